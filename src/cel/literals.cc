#include "cel/literals.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace keelson::cel {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char* EncodeRune(std::uint32_t rune, char* out) {
  if (rune < 0x80) {
    *out++ = static_cast<char>(rune);
  } else if (rune < 0x800) {
    *out++ = static_cast<char>(0xC0 | (rune >> 6));
    *out++ = static_cast<char>(0x80 | (rune & 0x3F));
  } else if (rune < 0x10000) {
    *out++ = static_cast<char>(0xE0 | (rune >> 12));
    *out++ = static_cast<char>(0x80 | ((rune >> 6) & 0x3F));
    *out++ = static_cast<char>(0x80 | (rune & 0x3F));
  } else {
    *out++ = static_cast<char>(0xF0 | (rune >> 18));
    *out++ = static_cast<char>(0x80 | ((rune >> 12) & 0x3F));
    *out++ = static_cast<char>(0x80 | ((rune >> 6) & 0x3F));
    *out++ = static_cast<char>(0x80 | (rune & 0x3F));
  }
  return out;
}

bool IsValidRune(std::uint32_t rune) { return rune <= 0x10FFFF && (rune < 0xD800 || rune > 0xDFFF); }

struct Escape {
  std::uint32_t rune = 0;
  std::size_t length = 0;  // bytes after the backslash and its letter
  bool encode = false;     // as UTF-8, not as one byte
  std::string_view error;
};

Escape ReadNumericEscape(char kind, std::string_view rest, bool bytes) {
  Escape escape;
  if (kind >= '0' && kind <= '3') {
    if (rest.size() < 2) return {.error = "unable to unescape octal sequence in string"};
    escape.rune = static_cast<std::uint32_t>(kind - '0');
    for (std::size_t i = 0; i < 2; ++i) {
      if (rest[i] < '0' || rest[i] > '7') return {.error = "unable to unescape octal sequence in string"};
      escape.rune = escape.rune * 8 + static_cast<std::uint32_t>(rest[i] - '0');
    }
    escape.length = 2;
    escape.encode = !bytes;
    return escape;
  }
  const std::size_t digits = kind == 'u' ? 4 : kind == 'U' ? 8 : 2;
  if ((bytes && digits > 2) || rest.size() < digits) return {.error = "unable to unescape string"};
  for (std::size_t i = 0; i < digits; ++i) {
    const int value = HexValue(rest[i]);
    if (value < 0) return {.error = "unable to unescape string"};
    escape.rune = escape.rune << 4 | static_cast<std::uint32_t>(value);
  }
  if (!bytes && !IsValidRune(escape.rune)) return {.error = "invalid unicode code point"};
  escape.length = digits;
  escape.encode = !bytes;
  return escape;
}

Escape ReadEscape(std::string_view text, bool bytes) {
  if (text.size() < 2) return {.error = "unable to unescape string, found '\\' as last character"};
  static constexpr std::string_view kLetters = "abfnrtv\\'\"`?";
  static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"`?";
  if (const auto i = kLetters.find(text[1]); i != kLetters.npos)
    return {.rune = static_cast<std::uint32_t>(static_cast<unsigned char>(kValues[i]))};
  if (std::string_view("xXuU0123").contains(text[1])) return ReadNumericEscape(text[1], text.substr(2), bytes);
  return {.error = "unable to unescape string"};
}

}  // namespace

std::optional<std::int64_t> ParseIntLiteral(std::string_view digits, bool negative) {
  const bool hex = digits.starts_with("0x");
  if (hex) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  constexpr std::uint64_t kMin = 1ULL << 63;
  if (negative) return value > kMin ? std::nullopt : std::optional(static_cast<std::int64_t>(0 - value));
  return value >= kMin ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
}

std::optional<std::uint64_t> ParseUintLiteral(std::string_view text) {
  text.remove_suffix(1);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseDoubleLiteral(std::string_view text, bool negative) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    value = std::strtod(std::string(text).c_str(), nullptr);  // distinguishes underflow, which is fine, from overflow
    if (std::isinf(value)) return std::nullopt;
  } else if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

Unescaped Unescape(std::string_view literal, bool bytes, base::Arena& arena) {
  bool raw = false;
  if (literal[0] == 'r' || literal[0] == 'R') {
    raw = true;
    literal.remove_prefix(1);
  }
  const bool triple = literal.size() >= 6 && literal[1] == literal[0] && literal[2] == literal[0];
  const std::size_t quotes = triple ? 3 : 1;
  std::string_view text = literal.substr(quotes, literal.size() - 2 * quotes);
  if (text.find_first_of(raw ? std::string_view("\r") : std::string_view("\r\\")) == text.npos) return {text, {}};

  char* const begin = arena.NewArray<char>(text.size());  // no escape is longer than its source
  char* out = begin;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\r') {  // line ends are normalised to \n
      *out++ = '\n';
      i += text.substr(i).starts_with("\r\n") ? 2 : 1;
      continue;
    }
    if (raw || c != '\\') {
      *out++ = c;
      ++i;
      continue;
    }
    const Escape escape = ReadEscape(text.substr(i), bytes);
    if (!escape.error.empty()) return {literal, escape.error};
    out = escape.encode ? EncodeRune(escape.rune, out) : (*out = static_cast<char>(escape.rune), out + 1);
    i += 2 + escape.length;
  }
  return {{begin, static_cast<std::size_t>(out - begin)}, {}};
}

bool IsReservedIdentifier(std::string_view name) {
  static constexpr std::string_view kReserved[] = {
      "as",  "break", "const",     "continue", "else",    "false",  "for",  "function", "if",   "import", "in",
      "let", "loop",  "namespace", "null",     "package", "return", "true", "var",      "void", "while",
  };
  return std::ranges::find(kReserved, name) != std::end(kReserved);
}

}  // namespace keelson::cel
