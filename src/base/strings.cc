#include "base/strings.h"

#include <algorithm>

#include <array>
#include <charconv>
#include <cstring>

namespace keelson::base {
namespace {

constexpr std::string_view kStdAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kURLAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> MakeDecodeTable(std::string_view alphabet) {
  std::array<std::int8_t, 256> table{};
  for (auto& entry : table) entry = -1;
  for (std::size_t i = 0; i < alphabet.size(); ++i)
    table[static_cast<std::uint8_t>(alphabet[i])] = static_cast<std::int8_t>(i);
  return table;
}

std::string Encode64(std::string_view bytes, std::string_view alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3) {
    const std::uint32_t group = static_cast<std::uint8_t>(bytes[i]) << 16 |
                                static_cast<std::uint8_t>(bytes[i + 1]) << 8 | static_cast<std::uint8_t>(bytes[i + 2]);
    out += alphabet[group >> 18];
    out += alphabet[group >> 12 & 63];
    out += alphabet[group >> 6 & 63];
    out += alphabet[group & 63];
  }
  const std::size_t rest = bytes.size() - i;
  if (rest == 0) return out;
  std::uint32_t group = static_cast<std::uint8_t>(bytes[i]) << 16;
  if (rest == 2) group |= static_cast<std::uint8_t>(bytes[i + 1]) << 8;
  out += alphabet[group >> 18];
  out += alphabet[group >> 12 & 63];
  if (rest == 2) out += alphabet[group >> 6 & 63];
  if (pad) out.append(3 - rest, '=');
  return out;
}

std::optional<std::string> Decode64(std::string_view text, const std::array<std::int8_t, 256>& table, bool padded) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=' && padded) {
      ++padding;
      continue;
    }
    const int value = table[static_cast<std::uint8_t>(c)];
    if (value < 0 || padding > 0) return std::nullopt;
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (++digits == 4) {
      out += static_cast<char>(group >> 16);
      out += static_cast<char>(group >> 8);
      out += static_cast<char>(group);
      group = 0;
      digits = 0;
    }
  }
  if (digits == 1) return std::nullopt;
  if (padded && padding != static_cast<std::size_t>(digits == 0 ? 0 : 4 - digits)) return std::nullopt;
  if (digits == 2) out += static_cast<char>(group >> 4);
  if (digits == 3) {
    out += static_cast<char>(group >> 10);
    out += static_cast<char>(group >> 2);
  }
  return out;
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f'; }

}  // namespace

// Go's strconv.IsPrint, for the ranges that matter in messages: control characters, the soft hyphen and unassigned
// or invisible blocks are escaped.
bool IsPrint(char32_t rune) {
  if (rune < 0x20 || rune == 0x7f) return false;
  if (rune < 0x7f) return true;
  if (rune < 0xa1) return false;
  if (rune == 0xad) return false;
  if (rune >= 0x2000 && rune <= 0x200f) return false;
  if (rune >= 0x2028 && rune <= 0x202f) return false;
  if (rune >= 0x205f && rune <= 0x206f) return false;
  if (rune == 0x3000 || rune == 0xfeff) return false;
  if (rune >= 0xd800 && rune <= 0xf8ff) return false;
  if (rune >= 0xfff0 && rune <= 0xfffb) return false;
  if ((rune & 0xfffe) == 0xfffe) return false;
  return rune < 0xe0000;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  pieces.reserve(static_cast<std::size_t>(std::ranges::count(text, separator)) + 1);
  for (;;) {
    const auto at = text.find(separator);
    pieces.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return pieces;
    text.remove_prefix(at + 1);
  }
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

std::string Join(const std::vector<std::string>& pieces, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) out += separator;
    out += pieces[i];
  }
  return out;
}

std::string ToLower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return out;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (;;) {
    const auto at = text.find(from);
    if (at == std::string_view::npos || from.empty()) {
      out += text;
      return out;
    }
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
}

std::string GoQuote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  while (!text.empty()) {
    const Rune rune = DecodeRune(text);
    const auto byte = static_cast<std::uint8_t>(text[0]);
    if (rune.value == 0xfffd && rune.length == 1) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else if (rune.value == '"' || rune.value == '\\') {
      out += '\\';
      out += text[0];
    } else if (IsPrint(rune.value)) {
      out += text.substr(0, static_cast<std::size_t>(rune.length));
    } else {
      switch (rune.value) {
        case '\a':
          out += "\\a";
          break;
        case '\b':
          out += "\\b";
          break;
        case '\f':
          out += "\\f";
          break;
        case '\n':
          out += "\\n";
          break;
        case '\r':
          out += "\\r";
          break;
        case '\t':
          out += "\\t";
          break;
        case '\v':
          out += "\\v";
          break;
        default:
          if (rune.value < ' ' || rune.value == 0x7f) {
            out += "\\x";
            out += kHex[rune.value >> 4];
            out += kHex[rune.value & 15];
          } else {
            const bool wide = rune.value > 0xffff;
            out += wide ? "\\U" : "\\u";
            for (int shift = wide ? 28 : 12; shift >= 0; shift -= 4) out += kHex[rune.value >> shift & 15];
          }
      }
    }
    text.remove_prefix(static_cast<std::size_t>(rune.length));
  }
  return out + '"';
}

std::optional<std::int64_t> ParseInt64(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (text.empty() || text[0] == '+') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> ParseUint64(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string Base64Encode(std::string_view bytes) { return Encode64(bytes, kStdAlphabet, true); }
std::string Base64URLEncode(std::string_view bytes) { return Encode64(bytes, kURLAlphabet, false); }

std::optional<std::string> Base64Decode(std::string_view text) {
  static constexpr auto kTable = MakeDecodeTable(kStdAlphabet);
  return Decode64(text, kTable, true);
}

std::optional<std::string> Base64URLDecode(std::string_view text) {
  static constexpr auto kTable = MakeDecodeTable(kURLAlphabet);
  return Decode64(text, kTable, false);
}

std::string HexEncode(std::string_view bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    out += kHex[static_cast<std::uint8_t>(c) >> 4];
    out += kHex[static_cast<std::uint8_t>(c) & 15];
  }
  return out;
}

Rune DecodeRune(std::string_view text) {
  if (text.empty()) return {0xfffd, 0};
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const auto continues = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first >= 0xc2 && first <= 0xdf && continues(1))
    return {static_cast<char32_t>((first & 0x1f) << 6 | (byte(1) & 0x3f)), 2};
  if (first >= 0xe0 && first <= 0xef && continues(1) && continues(2)) {
    const char32_t rune = static_cast<char32_t>((first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f));
    if (rune >= 0x800 && (rune < 0xd800 || rune > 0xdfff)) return {rune, 3};
  }
  if (first >= 0xf0 && first <= 0xf4 && continues(1) && continues(2) && continues(3)) {
    const char32_t rune =
        static_cast<char32_t>((first & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f));
    if (rune >= 0x10000 && rune <= 0x10ffff) return {rune, 4};
  }
  return {0xfffd, 1};
}

void AppendUTF8(std::string& out, char32_t rune) {
  if (rune < 0x80) {
    out += static_cast<char>(rune);
  } else if (rune < 0x800) {
    out += static_cast<char>(0xc0 | rune >> 6);
    out += static_cast<char>(0x80 | (rune & 0x3f));
  } else if (rune < 0x10000) {
    out += static_cast<char>(0xe0 | rune >> 12);
    out += static_cast<char>(0x80 | (rune >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (rune & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | rune >> 18);
    out += static_cast<char>(0x80 | (rune >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (rune >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (rune & 0x3f));
  }
}

namespace {

// Bytes at the beginning that are ASCII, in whole words.
std::size_t AsciiWords(std::string_view text) {
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= text.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & 0x8080808080808080) != 0) break;
  }
  return at;
}

}  // namespace

bool IsValidUTF8(std::string_view text) {
  for (;;) {
    text.remove_prefix(AsciiWords(text));
    while (!text.empty() && static_cast<std::uint8_t>(text[0]) < 0x80) text.remove_prefix(1);
    if (text.empty()) return true;
    const Rune rune = DecodeRune(text);
    if (rune.value == 0xfffd && rune.length == 1) return false;
    text.remove_prefix(static_cast<std::size_t>(rune.length));
  }
}

std::string ToValidUTF8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Rune rune = DecodeRune(text);
    AppendUTF8(out, rune.value);
    text.remove_prefix(static_cast<std::size_t>(rune.length));
  }
  return out;
}

bool ConstantTimeEquals(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile std::uint8_t difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference = difference | static_cast<std::uint8_t>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace keelson::base
