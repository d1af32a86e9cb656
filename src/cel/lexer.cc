#include "cel/lexer.h"

#include <algorithm>

namespace keelson::cel {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsIdentifierPart(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f'; }

// How far a rule matched: `length` of the match (0 = none) and, without a match, `failed` = bytes before the first byte
// at which no rule could go on.
struct Match {
  TokenType type = TokenType::kError;
  std::size_t length = 0;
  std::size_t failed = 0;
};

// Bytes of the escape sequence at text[i] (a backslash); 0 with `failed` set where there is none.
std::size_t EscapeLength(std::string_view text, std::size_t i, std::size_t& failed) {
  const auto digits = [&](std::size_t from, std::size_t count, auto valid) -> std::size_t {
    for (std::size_t k = from; k < from + count; ++k) {
      if (k >= text.size() || !valid(text[k])) {
        failed = k;
        return 0;
      }
    }
    return from + count - i;
  };
  if (i + 1 >= text.size()) {
    failed = text.size();
    return 0;
  }
  const char c = text[i + 1];
  if (std::string_view("abfnrtv\"'\\?`").contains(c)) return 2;
  if (c >= '0' && c <= '3') return digits(i + 2, 2, [](char d) { return d >= '0' && d <= '7'; });
  if (c == 'x' || c == 'X') return digits(i + 2, 2, IsHex);
  if (c == 'u') return digits(i + 2, 4, IsHex);
  if (c == 'U') return digits(i + 2, 8, IsHex);
  failed = i + 1;
  return 0;
}

// The string literal that opens at text[start] (a quote); `raw` literals have no escapes.
Match MatchQuoted(std::string_view text, std::size_t start, bool raw) {
  const char quote = text[start];
  Match match{.type = TokenType::kString};
  if (text.size() > start + 1 && text[start + 1] == quote) {
    match.length = start + 2;  // the empty string, unless a long literal closes
    if (text.size() <= start + 2 || text[start + 2] != quote) return match;
    for (std::size_t i = start + 3; i < text.size();) {
      if (text[i] == quote && text.substr(i, 3) == std::string_view(text.data() + start, 3)) {
        match.length = i + 3;
        return match;
      }
      if (raw || text[i] != '\\') {
        ++i;
        continue;
      }
      const std::size_t escape = EscapeLength(text, i, match.failed);
      if (escape == 0) return match;
      i += escape;
    }
    return match;
  }
  for (std::size_t i = start + 1; i < text.size();) {
    const char c = text[i];
    if (c == quote) {
      match.length = i + 1;
      return match;
    }
    if (c == '\n' || c == '\r') {
      match.failed = i;
      return match;
    }
    if (raw || c != '\\') {
      ++i;
      continue;
    }
    const std::size_t escape = EscapeLength(text, i, match.failed);
    if (escape == 0) return match;
    i += escape;
  }
  match.failed = text.size();
  return match;
}

std::size_t Digits(std::string_view text, std::size_t i) {
  while (i < text.size() && IsDigit(text[i])) ++i;
  return i;
}

// End of an exponent at text[i], or i.
std::size_t Exponent(std::string_view text, std::size_t i) {
  if (i >= text.size() || (text[i] != 'e' && text[i] != 'E')) return i;
  std::size_t k = i + 1;
  if (k < text.size() && (text[k] == '+' || text[k] == '-')) ++k;
  const std::size_t end = Digits(text, k);
  return end == k ? i : end;
}

Match MatchNumber(std::string_view text) {
  if (text[0] == '.') {
    const std::size_t end = Digits(text, 1);
    return {TokenType::kFloat, Exponent(text, end)};
  }
  if (text.size() > 2 && text[0] == '0' && text[1] == 'x' && IsHex(text[2])) {
    std::size_t end = 2;
    while (end < text.size() && IsHex(text[end])) ++end;
    if (end < text.size() && (text[end] == 'u' || text[end] == 'U')) return {TokenType::kUint, end + 1};
    return {TokenType::kInt, end};
  }
  const std::size_t whole = Digits(text, 0);
  if (whole < text.size() && (text[whole] == 'u' || text[whole] == 'U')) return {TokenType::kUint, whole + 1};
  std::size_t end = whole;
  if (whole + 1 < text.size() && text[whole] == '.' && IsDigit(text[whole + 1])) end = Digits(text, whole + 1);
  end = Exponent(text, end);
  return {end == whole ? TokenType::kInt : TokenType::kFloat, end};
}

TokenType Keyword(std::string_view word) {
  if (word == "in") return TokenType::kIn;
  if (word == "true") return TokenType::kTrue;
  if (word == "false") return TokenType::kFalse;
  if (word == "null") return TokenType::kNull;
  return TokenType::kIdentifier;
}

Match MatchWord(std::string_view text) {
  // Prefixes of string and bytes literals: r, b, br.
  const char first = static_cast<char>(text[0] | 0x20);
  if ((first == 'r' || first == 'b') && text.size() > 1) {
    std::size_t quote = 1;
    bool raw = first == 'r';
    if (first == 'b' && (text[1] == 'r' || text[1] == 'R')) {
      raw = true;
      quote = 2;
    }
    if (quote < text.size() && (text[quote] == '"' || text[quote] == '\'')) {
      Match match = MatchQuoted(text, quote, raw);
      if (first == 'b') match.type = TokenType::kBytes;
      if (match.length != 0) return match;
    }
  }
  std::size_t end = 1;
  while (end < text.size() && IsIdentifierPart(text[end])) ++end;
  return {Keyword(text.substr(0, end)), end};
}

Match MatchEscapedIdentifier(std::string_view text) {
  std::size_t end = 1;
  while (end < text.size() && (IsIdentifierPart(text[end]) || std::string_view(".-/ ").contains(text[end]))) ++end;
  if (end > 1 && end < text.size() && text[end] == '`') return {TokenType::kEscIdentifier, end + 1};
  return {.failed = end};
}

Match MatchOperator(std::string_view text) {
  using enum TokenType;
  const auto pair = [&](char second, TokenType both, TokenType one) -> Match {
    if (text.size() > 1 && text[1] == second) return {both, 2};
    if (one == kError) return {.failed = 1};
    return {one, 1};
  };
  switch (text[0]) {
    case '=':
      return pair('=', kEquals, kError);
    case '!':
      return pair('=', kNotEquals, kExclam);
    case '<':
      return pair('=', kLessEquals, kLess);
    case '>':
      return pair('=', kGreaterEquals, kGreater);
    case '&':
      return pair('&', kLogicalAnd, kError);
    case '|':
      return pair('|', kLogicalOr, kError);
    case '[':
      return {kLBracket, 1};
    case ']':
      return {kRBracket, 1};
    case '{':
      return {kLBrace, 1};
    case '}':
      return {kRBrace, 1};
    case '(':
      return {kLParen, 1};
    case ')':
      return {kRParen, 1};
    case '.':
      return {kDot, 1};
    case ',':
      return {kComma, 1};
    case '-':
      return {kMinus, 1};
    case '?':
      return {kQuestion, 1};
    case ':':
      return {kColon, 1};
    case '+':
      return {kPlus, 1};
    case '*':
      return {kStar, 1};
    case '/':
      return {kSlash, 1};
    case '%':
      return {kPercent, 1};
    default:
      return {};
  }
}

Match MatchToken(std::string_view text) {
  const char c = text[0];
  if (IsLetter(c) || c == '_') return MatchWord(text);
  if (IsDigit(c) || (c == '.' && text.size() > 1 && IsDigit(text[1]))) return MatchNumber(text);
  if (c == '"' || c == '\'') return MatchQuoted(text, 0, false);
  if (c == '`') return MatchEscapedIdentifier(text);
  return MatchOperator(text);
}

std::int32_t CountRunes(std::string_view text) {
  return static_cast<std::int32_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

Token Lexer::Next() {
  for (;;) {
    while (position_ < source_.size() && IsSpace(source_[position_])) {
      ++position_;
      ++offset_;
    }
    if (position_ >= source_.size()) return {TokenType::kEnd, offset_, {}};
    if (!source_.substr(position_).starts_with("//")) break;
    const std::size_t end = std::min(source_.find('\n', position_), source_.size());
    offset_ += CountRunes(source_.substr(position_, end - position_));
    position_ = end;
  }
  const std::string_view text = source_.substr(position_);
  Match match = MatchToken(text);
  if (match.length == 0) {
    match.type = TokenType::kError;
    match.length = std::min(match.failed + 1, text.size());  // the failing character is skipped as well
    while (match.length < text.size() && (static_cast<unsigned char>(text[match.length]) & 0xC0) == 0x80)
      ++match.length;
  }
  const Token token{match.type, offset_, text.substr(0, match.length)};
  position_ += match.length;
  const bool ascii =
      match.type != TokenType::kString && match.type != TokenType::kBytes && match.type != TokenType::kError;
  offset_ += ascii ? static_cast<std::int32_t>(match.length) : CountRunes(token.text);
  return token;
}

}  // namespace keelson::cel
