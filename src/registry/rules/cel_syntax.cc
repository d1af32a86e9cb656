#include "registry/rules/cel_syntax.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"

namespace keelson::registry::rules {
namespace {

constexpr std::size_t kDepthMax = 250;  // As deep as the compiler's parser goes.

enum class Token { kOperand, kBinary, kPrefix, kOpen, kClose, kDot, kComma };

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::optional<std::string> Run() {
    while (at_ < text_.size() && !problem_.has_value()) Step();
    if (problem_.has_value()) return problem_;
    if (!open_.empty()) {
      // After an opening brace the parser tells what may begin a field, else only the bracket it waits for.
      const bool fields = open_.back() == '{' && last_ == Token::kOpen;
      const std::string closing = "'" + std::string(1, Closing(open_.back())) + "'";
      return Fail(text_.size(), "mismatched input '<EOF>' expecting " +
                                    (fields ? "{" + closing + ", ',', '?', IDENTIFIER, ESC_IDENTIFIER}" : closing));
    }
    if (last_ == Token::kDot) return Fail(text_.size(), "no viable alternative at input '.'");
    if (NeedsOperand(last_)) {
      return Fail(text_.size(),
                  "mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
                  "NUM_FLOAT, NUM_INT, NUM_UINT, "
                  "STRING, BYTES, IDENTIFIER}");
    }
    return std::nullopt;
  }

 private:
  static char Closing(char open) { return open == '(' ? ')' : open == '[' ? ']' : '}'; }
  static bool NeedsOperand(Token token) {
    return token == Token::kBinary || token == Token::kPrefix || token == Token::kDot;
  }
  static bool IsIdentifier(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  std::optional<std::string> Fail(std::size_t at, std::string_view what) {
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::ranges::count(before, '\n');
    const auto newline = before.rfind('\n');
    const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    const std::size_t column = at - start;
    const std::string_view source = text_.substr(start, text_.find('\n', start) - start);
    problem_ = "compilation failed: ERROR: <input>:" + std::to_string(line) + ":" + std::to_string(column + 1) +
               ": Syntax error: " + std::string(what) + "\n | " + std::string(source) + "\n | " +
               std::string(column, '.') + "^";
    return problem_;
  }

  void Push(Token token, std::size_t at, std::string_view shown) {
    const bool unexpected =
        (token == Token::kBinary && last_ != Token::kOperand && last_ != Token::kClose) ||
        (token == Token::kOperand && (last_ == Token::kOperand || last_ == Token::kClose)) ||
        (token == Token::kDot && last_ == Token::kDot) || (token == Token::kClose && NeedsOperand(last_)) ||
        (token == Token::kComma && (last_ == Token::kComma || last_ == Token::kOpen || NeedsOperand(last_))) ||
        (token == Token::kOpen && last_ == Token::kDot);
    if (unexpected) {
      Fail(at, "no viable alternative at input '" + std::string(shown) + "'");
      return;
    }
    last_ = token;
  }

  void Step() {
    const std::size_t start = at_;
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
      ++at_;
    } else if (c == '/' && text_.substr(at_).starts_with("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '\'') {
      Quoted(start, false);
    } else if (c == '`') {
      const auto end = text_.find('`', at_ + 1);
      if (end == std::string_view::npos) {
        Fail(start, "token recognition error at: '`'");
        return;
      }
      at_ = end + 1;
      Push(Token::kOperand, start, "`");
    } else if (IsIdentifier(c)) {
      Word(start);
    } else {
      Operator(start, c);
    }
  }

  // A quoted text, plain or in triple quotes. `raw`: backslashes mean nothing.
  void Quoted(std::size_t token_start, bool raw) {
    const char quote = text_[at_];
    const std::string triple(3, quote);
    const bool is_triple = text_.substr(at_).starts_with(triple);
    std::size_t i = at_ + (is_triple ? 3 : 1);
    for (; i < text_.size(); ++i) {
      if (text_[i] == '\\' && !raw) {
        ++i;
      } else if (is_triple ? text_.substr(i).starts_with(triple) : text_[i] == quote) {
        at_ = i + (is_triple ? 3 : 1);
        Push(Token::kOperand, token_start, text_.substr(token_start, at_ - token_start));
        return;
      } else if (text_[i] == '\n' && !is_triple) {
        break;
      }
    }
    Fail(token_start, "token recognition error at: '" + std::string(text_.substr(token_start)) + "'");
  }

  void Word(std::size_t start) {
    while (at_ < text_.size() && IsIdentifier(text_[at_])) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'') && word.size() <= 2 &&
        word.find_first_not_of("rRbB") == std::string_view::npos) {
      Quoted(start, word.find_first_of("rR") != std::string_view::npos);
      return;
    }
    const bool digits = word[0] >= '0' && word[0] <= '9';
    if (digits && at_ < text_.size() && text_[at_] == '.' && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' &&
        text_[at_ + 1] <= '9') {
      ++at_;
      while (at_ < text_.size() &&
             (IsIdentifier(text_[at_]) || ((text_[at_] == '-' || text_[at_] == '+') && (text_[at_ - 1] | 0x20) == 'e')))
        ++at_;
    }
    Push(word == "in" && last_ != Token::kDot ? Token::kBinary : Token::kOperand, start, word);
  }

  void Operator(std::size_t start, char c) {
    const std::string_view rest = text_.substr(at_);
    const bool after_operand = last_ == Token::kOperand || last_ == Token::kClose;
    for (const std::string_view two : {"&&", "||", "==", "!=", "<=", ">="}) {
      if (!rest.starts_with(two)) continue;
      at_ += 2;
      Push(Token::kBinary, start, two);
      return;
    }
    const std::string_view one = rest.substr(0, 1);
    ++at_;
    switch (c) {
      case '(':
      case '[':
      case '{':
        if (open_.size() >= kDepthMax) {
          Fail(start, "expression recursion limit exceeded: 250");
          return;
        }
        Push(Token::kOpen, start, last_ == Token::kDot ? "." + std::string(one) : std::string(one));
        open_.push_back(c);
        break;
      case ')':
      case ']':
      case '}':
        if (open_.empty() || Closing(open_.back()) != c) {
          Fail(start, "extraneous input '" + std::string(one) + "' expecting <EOF>");
          return;
        }
        open_.pop_back();
        Push(Token::kClose, start, one);
        break;
      case '.':
        Push(Token::kDot, start, one);
        break;
      case ',':
        Push(Token::kComma, start, one);
        break;
      case '!':
        Push(Token::kPrefix, start, one);
        break;
      case '-':
        Push(after_operand ? Token::kBinary : Token::kPrefix, start, one);
        break;
      case '?':  // Optional members and items (a.?b, [?a]) have it where a ternary cannot stand.
        if (last_ != Token::kDot && last_ != Token::kOpen && last_ != Token::kComma) Push(Token::kBinary, start, one);
        break;
      case '+':
      case '*':
      case '/':
      case '%':
      case '<':
      case '>':
      case ':':
        Push(Token::kBinary, start, one);
        break;
      default:
        Fail(start, "token recognition error at: '" + std::string(one) + "'");
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Token last_ = Token::kOpen;
  std::vector<char> open_;
  std::optional<std::string> problem_;
};

}  // namespace

std::optional<std::string> CELSyntaxProblem(std::string_view expression) { return Scanner(expression).Run(); }

std::string_view CELLiteralType(std::string_view expression) {
  expression = base::Trim(expression);
  if (expression == "true" || expression == "false") return "bool";
  if (expression == "null") return "null_type";
  if (expression.empty()) return {};
  const std::string_view digits = expression[0] == '-' ? expression.substr(1) : expression;
  if (!digits.empty() && digits[0] >= '0' && digits[0] <= '9') {
    const bool integer = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
    if (integer) return "int";
    if (digits.ends_with('u') &&
        std::ranges::all_of(digits.substr(0, digits.size() - 1), [](char c) { return c >= '0' && c <= '9'; }))
      return "uint";
    const bool number =
        digits.find_first_not_of("0123456789.eE") == std::string_view::npos && std::ranges::count(digits, '.') <= 1;
    return number ? "double" : std::string_view();
  }
  const bool bytes = (expression[0] | 0x20) == 'b' && expression.size() > 2;
  const std::string_view quoted = bytes ? expression.substr(1) : expression;
  const char quote = quoted[0];
  if ((quote != '"' && quote != '\'') || quoted.size() < 2 || quoted.back() != quote) return {};
  // One quoted text and nothing behind it: the quote does not stand inside, also not behind a backslash.
  const std::string_view inner = quoted.substr(1, quoted.size() - 2);
  if (inner.find(quote) != std::string_view::npos || inner.find('\\') != std::string_view::npos) return {};
  return bytes ? "bytes" : "string";
}

void ValidateCELExpression(std::string_view expression, std::initializer_list<std::string_view> types,
                           std::string_view wanted, const FieldPath& path, FieldErrors& errors) {
  if (const auto problem = CELSyntaxProblem(expression)) {
    errors.push_back(validation::Invalid(path, expression, *problem));
    return;
  }
  const std::string_view type = CELLiteralType(expression);
  if (type.empty() || types.size() == 0 || std::ranges::find(types, type) != types.end()) return;
  errors.push_back(validation::Invalid(path, expression,
                                       "must evaluate to " + std::string(wanted) + " but got " + std::string(type)));
}

}  // namespace keelson::registry::rules
