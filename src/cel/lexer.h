// Tokens of a CEL expression, cut as cel-go's generated lexer cuts them (longest match, ties to the first rule).
// The lexer allocates nothing: tokens are views into the source.
#pragma once

#include <cstdint>
#include <string_view>

namespace keelson::cel {

// Numbered as in the grammar: the order decides how sets of expected tokens are printed.
enum class TokenType : std::uint8_t {
  kEpsilon,
  kEquals,
  kNotEquals,
  kIn,
  kLess,
  kLessEquals,
  kGreaterEquals,
  kGreater,
  kLogicalAnd,
  kLogicalOr,
  kLBracket,
  kRBracket,
  kLBrace,
  kRBrace,
  kLParen,
  kRParen,
  kDot,
  kComma,
  kMinus,
  kExclam,
  kQuestion,
  kColon,
  kPlus,
  kStar,
  kSlash,
  kPercent,
  kTrue,
  kFalse,
  kNull,
  kWhitespace,
  kComment,
  kFloat,
  kInt,
  kUint,
  kString,
  kBytes,
  kIdentifier,
  kEscIdentifier,
  kEnd,
  kError,  // no token begins here; `text` is what cel-go reports and skips
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::int32_t offset = 0;  // code points
  std::string_view text;
};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}
  // The next token that is not white space or a comment.
  Token Next();

 private:
  std::string_view source_;
  std::size_t position_ = 0;
  std::int32_t offset_ = 0;
};

}  // namespace keelson::cel
