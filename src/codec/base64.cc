#include "codec/base64.h"

#include <array>

namespace keelson::codec {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kInvalid = 0xff;

constexpr auto kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kInvalid);
  for (std::uint8_t i = 0; i < 64; ++i) values[static_cast<unsigned char>(kAlphabet[i])] = i;
  return values;
}();

std::uint8_t ValueOf(char c) { return kValues[static_cast<unsigned char>(c)]; }
bool IsBreak(char c) { return c == '\n' || c == '\r'; }

}  // namespace

Base64Check CheckBase64(std::string_view text) {
  // The canonical form in one plain pass: whole quads, padding only in the last.
  if (text.size() % 4 == 0) {
    std::size_t digits = text.size();
    if (digits > 0 && text[digits - 1] == '=') --digits;
    if (digits > 0 && digits < text.size() && text[digits - 1] == '=') --digits;
    bool clean = true;
    for (std::size_t i = 0; i < digits; ++i) clean &= ValueOf(text[i]) != kInvalid;
    const std::size_t spare = text.size() - digits;
    if (clean && (spare == 0 || (ValueOf(text[digits - 1]) & (spare == 1 ? 0x3 : 0xf)) == 0))
      return {.canonical = true, .valid = true};
  }
  // Otherwise as Go walks it: line breaks are skipped anywhere, the error names the byte.
  Base64Check check;
  std::size_t at = 0;
  for (;;) {
    int in_quad = 0;
    while (in_quad < 4) {
      if (at == text.size()) {
        check.valid = in_quad == 0;
        check.error_at = at - static_cast<std::size_t>(in_quad);
        return check;
      }
      const char c = text[at++];
      if (IsBreak(c)) continue;
      if (ValueOf(c) != kInvalid) {
        ++in_quad;
        continue;
      }
      check.error_at = at - 1;
      if (c != '=' || in_quad < 2) return check;
      if (in_quad == 2) {
        while (at < text.size() && IsBreak(text[at])) ++at;
        if (at == text.size()) {
          check.error_at = text.size();
          return check;
        }
        if (text[at] != '=') return check;
        ++at;
      }
      while (at < text.size() && IsBreak(text[at])) ++at;
      check.error_at = at;
      check.valid = at == text.size();
      return check;
    }
  }
}

void WriteBase64(const char* bytes, std::size_t size, char* out) {
  const auto* in = reinterpret_cast<const unsigned char*>(bytes);
  for (; size >= 3; size -= 3, in += 3, out += 4) {
    const std::uint32_t group =
        static_cast<std::uint32_t>(in[0]) << 16 | static_cast<std::uint32_t>(in[1]) << 8 | in[2];
    out[0] = kAlphabet[group >> 18];
    out[1] = kAlphabet[group >> 12 & 63];
    out[2] = kAlphabet[group >> 6 & 63];
    out[3] = kAlphabet[group & 63];
  }
  if (size == 0) return;
  const std::uint32_t group =
      static_cast<std::uint32_t>(in[0]) << 16 | (size == 2 ? static_cast<std::uint32_t>(in[1]) << 8 : 0);
  out[0] = kAlphabet[group >> 18];
  out[1] = kAlphabet[group >> 12 & 63];
  out[2] = size == 2 ? kAlphabet[group >> 6 & 63] : '=';
  out[3] = '=';
}

std::size_t ReadBase64(std::string_view text, char* out) {
  std::uint32_t group = 0;
  int digits = 0;
  char* at = out;
  for (const char c : text) {
    const std::uint8_t value = ValueOf(c);
    if (value == kInvalid) continue;  // padding or a line break
    group = group << 6 | value;
    if (++digits < 4) continue;
    *at++ = static_cast<char>(group >> 16);
    *at++ = static_cast<char>(group >> 8);
    *at++ = static_cast<char>(group);
    digits = 0;
    group = 0;
  }
  if (digits == 3) {
    *at++ = static_cast<char>(group >> 10);
    *at++ = static_cast<char>(group >> 2);
  } else if (digits == 2) {
    *at++ = static_cast<char>(group >> 4);
  }
  return static_cast<std::size_t>(at - out);
}

}  // namespace keelson::codec
