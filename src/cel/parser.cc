#include "cel/parser.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cel/expr_builder.h"
#include "cel/lexer.h"
#include "cel/literals.h"
#include "cel/syntax_parser.h"

namespace keelson::cel {
namespace {

// Nesting handled in one pass. Each level enters a grammar rule at most twice, so kRecursionMax cannot be reached here;
// deeper expressions go to SyntaxParser, which counts exactly.
constexpr int kNestingMax = 120;

struct Parsed {
  Expr* expr = nullptr;  // null = not well-formed
  int height = 0;        // nested operators and selections, which cel-go limits to kRecursionMax
};

class Parser {
 public:
  Parser(const Environment& env, Ast& ast) : env_(env), builder_(ast, env), lexer_(ast.source().text()) {
    token_ = lexer_.Next();
  }

  // Null where the text is not well-formed or too deep.
  Expr* ParseAll() {
    const Parsed all = ParseExpr();
    if (all.expr == nullptr || token_.type != TokenType::kEnd || all.height > kRecursionMax) return nullptr;
    return builder_.overflowed() ? nullptr : all.expr;
  }
  std::uint32_t id_count() const { return builder_.next_id(); }

 private:
  void Advance() {
    if (peeked_) {
      token_ = next_;
      peeked_ = false;
    } else {
      token_ = lexer_.Next();
    }
  }
  const Token& Peek() {
    if (!peeked_) {
      next_ = lexer_.Next();
      peeked_ = true;
    }
    return next_;
  }
  bool Accept(TokenType type) {
    if (token_.type != type) return false;
    Advance();
    return true;
  }

  Parsed ParseExpr();
  Parsed ParseLogical(TokenType type, std::string_view function);
  Parsed ParseRelation();
  Parsed ParseCalc(int precedence);
  Parsed ParseUnary();
  Parsed ParseMember();
  Parsed ParseMemberSuffix(Parsed target, bool& qualified);
  Parsed ParseIndex(Parsed target);
  Parsed ParsePrimary(bool& qualified);
  Parsed ParseIdentOrCall(bool& qualified);
  Parsed ParseLiteral();
  Parsed ParseList();
  Parsed ParseMap();
  Parsed ParseMessage(const Expr& name);
  bool ParseArguments(std::size_t& mark, int& height);
  Parsed FinishCall(std::int32_t offset, std::string_view function, Expr* target, std::size_t mark, int height);

  const Environment& env_;
  ExprBuilder builder_;
  Lexer lexer_;
  Token token_;
  Token next_;
  bool peeked_ = false;
  int nesting_ = 0;
  std::vector<Expr*> scratch_;         // arguments and terms of the calls being parsed, as a stack
  std::vector<std::int32_t> offsets_;  // operators of the logical chains being parsed
  std::vector<Entry> entries_;         // entries of the literals being parsed
};

Parsed Parser::ParseExpr() {
  if (++nesting_ > kNestingMax) return {};
  Parsed result = ParseLogical(TokenType::kLogicalOr, operators::kLogicalOr);
  if (result.expr != nullptr && token_.type == TokenType::kQuestion) {
    const std::int32_t offset = token_.offset;
    Advance();
    const Parsed yes = ParseLogical(TokenType::kLogicalOr, operators::kLogicalOr);
    if (yes.expr == nullptr || !Accept(TokenType::kColon)) return {};
    const Parsed no = ParseExpr();
    if (no.expr == nullptr) return {};
    result = {builder_.NewCall(offset, operators::kConditional, {result.expr, yes.expr, no.expr}),
              1 + std::max({result.height, yes.height, no.height})};
  }
  --nesting_;
  return result;
}

Parsed Parser::ParseLogical(TokenType type, std::string_view function) {
  const bool is_or = type == TokenType::kLogicalOr;
  const auto term = [&] {
    return is_or ? ParseLogical(TokenType::kLogicalAnd, operators::kLogicalAnd) : ParseRelation();
  };
  Parsed result = term();
  if (result.expr == nullptr || token_.type != type) return result;
  const std::size_t terms = scratch_.size();
  const std::size_t ops = offsets_.size();
  scratch_.push_back(result.expr);
  while (token_.type == type) {
    offsets_.push_back(token_.offset);
    Advance();
    const Parsed next = term();
    if (next.expr == nullptr) return {};
    scratch_.push_back(next.expr);
    result.height = std::max(result.height, next.height);
  }
  result.expr = builder_.Balance(function, std::span(scratch_).subspan(terms), std::span(offsets_).subspan(ops));
  scratch_.resize(terms);
  offsets_.resize(ops);
  return result;
}

std::string_view RelationOperator(TokenType type) {
  switch (type) {
    case TokenType::kLess:
      return operators::kLess;
    case TokenType::kLessEquals:
      return operators::kLessEquals;
    case TokenType::kGreater:
      return operators::kGreater;
    case TokenType::kGreaterEquals:
      return operators::kGreaterEquals;
    case TokenType::kEquals:
      return operators::kEquals;
    case TokenType::kNotEquals:
      return operators::kNotEquals;
    case TokenType::kIn:
      return operators::kIn;
    default:
      return {};
  }
}

Parsed Parser::ParseRelation() {
  Parsed left = ParseCalc(0);
  for (;;) {
    if (left.expr == nullptr) return left;
    const std::string_view function = RelationOperator(token_.type);
    if (function.empty()) return left;
    const std::int32_t offset = token_.offset;
    Advance();
    const Parsed right = ParseCalc(0);
    if (right.expr == nullptr) return {};
    left = {builder_.NewCall(offset, function, {left.expr, right.expr}), 1 + std::max(left.height, right.height)};
  }
}

struct CalcOperator {
  std::string_view function;
  int precedence = -1;
};

CalcOperator FindCalcOperator(TokenType type) {
  switch (type) {
    case TokenType::kPlus:
      return {operators::kAdd, 0};
    case TokenType::kMinus:
      return {operators::kSubtract, 0};
    case TokenType::kStar:
      return {operators::kMultiply, 1};
    case TokenType::kSlash:
      return {operators::kDivide, 1};
    case TokenType::kPercent:
      return {operators::kModulo, 1};
    default:
      return {};
  }
}

// Operators of at least `precedence`, left-associative.
Parsed Parser::ParseCalc(int precedence) {
  Parsed left = ParseUnary();
  for (;;) {
    if (left.expr == nullptr) return left;
    const CalcOperator op = FindCalcOperator(token_.type);
    if (op.precedence < precedence) return left;
    const std::int32_t offset = token_.offset;
    Advance();
    const Parsed right = ParseCalc(op.precedence + 1);
    if (right.expr == nullptr) return {};
    left = {builder_.NewCall(offset, op.function, {left.expr, right.expr}), 1 + std::max(left.height, right.height)};
  }
}

Parsed Parser::ParseUnary() {
  const TokenType type = token_.type;
  if (type != TokenType::kExclam && type != TokenType::kMinus) return ParseMember();
  if (type == TokenType::kMinus && (Peek().type == TokenType::kInt || Peek().type == TokenType::kFloat))
    return ParseMember();
  const std::int32_t offset = token_.offset;
  std::size_t count = 0;
  while (Accept(type)) ++count;
  Parsed operand = ParseMember();
  if (operand.expr == nullptr || count % 2 == 0) return operand;
  const auto function = type == TokenType::kExclam ? operators::kLogicalNot : operators::kNegate;
  operand.expr = builder_.NewCall(offset, function, {operand.expr});
  return operand;
}

Parsed Parser::ParseMember() {
  bool qualified = false;  // the expression so far is a chain of plain names
  Parsed result = ParsePrimary(qualified);
  while (result.expr != nullptr) {
    switch (token_.type) {
      case TokenType::kDot:
        result = ParseMemberSuffix(result, qualified);
        break;
      case TokenType::kLBracket:
        qualified = false;
        result = ParseIndex(result);
        break;
      case TokenType::kLBrace:
        if (!qualified) return {};
        qualified = false;
        result = ParseMessage(*result.expr);
        break;
      default:
        return result;
    }
  }
  return {};
}

Parsed Parser::ParseMemberSuffix(Parsed target, bool& qualified) {
  const std::int32_t dot = token_.offset;
  Advance();
  const bool optional = Accept(TokenType::kQuestion);
  if (token_.type != TokenType::kIdentifier || (optional && !env_.has(Library::kOptionals))) return {};
  const Token name = token_;
  Advance();
  if (optional) {
    qualified = false;
    Expr* field = builder_.NewText(name.offset, LiteralKind::kString, name.text);
    return {builder_.NewCall(dot, operators::kOptSelect, {target.expr, field}), target.height + 1};
  }
  if (token_.type != TokenType::kLParen) return {builder_.NewSelect(dot, target.expr, name.text), target.height + 1};
  qualified = false;
  const std::int32_t open = token_.offset;
  std::size_t mark = 0;
  int height = target.height;
  if (!ParseArguments(mark, height)) return {};
  return FinishCall(open, name.text, target.expr, mark, height + 1);
}

// The arguments in parentheses are pushed on scratch_ above `mark`.
bool Parser::ParseArguments(std::size_t& mark, int& height) {
  mark = scratch_.size();
  Advance();
  if (Accept(TokenType::kRParen)) return true;
  do {
    const Parsed argument = ParseExpr();
    if (argument.expr == nullptr) return false;
    height = std::max(height, argument.height);
    scratch_.push_back(argument.expr);
  } while (Accept(TokenType::kComma));
  return Accept(TokenType::kRParen);
}

Parsed Parser::FinishCall(std::int32_t offset, std::string_view function, Expr* target, std::size_t mark, int height) {
  MacroError error;
  Expr* call = builder_.CallOrMacro(offset, function, target, std::span(scratch_).subspan(mark), error);
  scratch_.resize(mark);
  return {call, height};
}

Parsed Parser::ParseIndex(Parsed target) {
  const std::int32_t offset = token_.offset;
  Advance();
  const bool optional = Accept(TokenType::kQuestion);
  if (optional && !env_.has(Library::kOptionals)) return {};
  const Parsed index = ParseExpr();
  if (index.expr == nullptr || !Accept(TokenType::kRBracket)) return {};
  const auto function = optional ? operators::kOptIndex : operators::kIndex;
  return {builder_.NewCall(offset, function, {target.expr, index.expr}), 1 + std::max(target.height, index.height)};
}

Parsed Parser::ParsePrimary(bool& qualified) {
  switch (token_.type) {
    case TokenType::kDot:
    case TokenType::kIdentifier:
      return ParseIdentOrCall(qualified);
    case TokenType::kLParen: {
      Advance();
      const Parsed inner = ParseExpr();
      if (inner.expr == nullptr || !Accept(TokenType::kRParen)) return {};
      return inner;
    }
    case TokenType::kLBracket:
      return ParseList();
    case TokenType::kLBrace:
      return ParseMap();
    default:
      return ParseLiteral();
  }
}

Parsed Parser::ParseIdentOrCall(bool& qualified) {
  const std::string_view start = token_.text;
  const bool leading_dot = Accept(TokenType::kDot);
  if (token_.type != TokenType::kIdentifier) return {};
  const Token name = token_;
  if (IsReservedIdentifier(name.text)) return {};
  Advance();
  std::string_view text = name.text;
  if (leading_dot) {
    // The name with its dot is one piece of the source unless white space is between.
    text = start.data() + 1 == name.text.data() ? std::string_view(start.data(), name.text.size() + 1)
                                                : builder_.arena().Concat(".", name.text);
  }
  if (token_.type != TokenType::kLParen) {
    qualified = true;
    return {builder_.NewIdent(name.offset, text), 0};
  }
  const std::int32_t open = token_.offset;
  std::size_t mark = 0;
  int height = 0;
  if (!ParseArguments(mark, height)) return {};
  return FinishCall(open, text, nullptr, mark, height);
}

Parsed Parser::ParseLiteral() {
  const std::int32_t offset = token_.offset;
  const bool negative = Accept(TokenType::kMinus);
  const Token token = token_;
  if (negative && token.type != TokenType::kInt && token.type != TokenType::kFloat) return {};
  Advance();
  Expr* expr = builder_.NewExpr(ExprKind::kLiteral, offset);
  switch (token.type) {
    case TokenType::kInt: {
      const auto value = ParseIntLiteral(token.text, negative);
      if (!value) return {};
      expr->literal = LiteralKind::kInt;
      expr->int_value = *value;
      return {expr, 0};
    }
    case TokenType::kUint: {
      const auto value = ParseUintLiteral(token.text);
      if (!value) return {};
      expr->literal = LiteralKind::kUint;
      expr->uint_value = *value;
      return {expr, 0};
    }
    case TokenType::kFloat: {
      const auto value = ParseDoubleLiteral(token.text, negative);
      if (!value) return {};
      expr->literal = LiteralKind::kDouble;
      expr->double_value = *value;
      return {expr, 0};
    }
    case TokenType::kString:
    case TokenType::kBytes: {
      const bool bytes = token.type == TokenType::kBytes;
      const auto text = Unescape(bytes ? token.text.substr(1) : token.text, bytes, builder_.arena());
      if (!text.error.empty()) return {};
      expr->literal = bytes ? LiteralKind::kBytes : LiteralKind::kString;
      expr->text = text.value;
      return {expr, 0};
    }
    case TokenType::kTrue:
    case TokenType::kFalse:
      expr->literal = LiteralKind::kBool;
      expr->bool_value = token.type == TokenType::kTrue;
      return {expr, 0};
    case TokenType::kNull:
      return {expr, 0};
    default:
      return {};
  }
}

Parsed Parser::ParseList() {
  const std::int32_t offset = token_.offset;
  const std::size_t mark = entries_.size();
  int height = 0;
  Advance();
  // A lone comma is an empty list: '[' listInit? ','? ']'.
  if (token_.type == TokenType::kComma) {
    Advance();
  } else {
    while (token_.type != TokenType::kRBracket) {
      Entry entry;
      entry.optional = Accept(TokenType::kQuestion);
      if (entry.optional && !env_.has(Library::kOptionals)) return {};
      const Parsed value = ParseExpr();
      if (value.expr == nullptr) return {};
      entry.value = value.expr;
      height = std::max(height, value.height);
      entries_.push_back(entry);
      if (!Accept(TokenType::kComma)) break;
    }
  }
  if (!Accept(TokenType::kRBracket)) return {};
  Expr* list = builder_.NewAggregate(ExprKind::kList, offset, std::span(entries_).subspan(mark));
  entries_.resize(mark);
  return {list, height};
}

Parsed Parser::ParseMap() {
  const std::int32_t offset = token_.offset;
  const std::size_t mark = entries_.size();
  int height = 0;
  Advance();
  if (token_.type == TokenType::kComma) {
    Advance();
  } else {
    while (token_.type != TokenType::kRBrace) {
      Entry entry;
      entry.optional = Accept(TokenType::kQuestion);
      if (entry.optional && !env_.has(Library::kOptionals)) return {};
      const Parsed key = ParseExpr();
      if (key.expr == nullptr) return {};
      entry.offset = token_.offset;
      entry.id = builder_.NextId();
      if (!Accept(TokenType::kColon)) return {};
      const Parsed value = ParseExpr();
      if (value.expr == nullptr) return {};
      entry.key = key.expr;
      entry.value = value.expr;
      height = std::max({height, key.height, value.height});
      entries_.push_back(entry);
      if (!Accept(TokenType::kComma)) break;
    }
  }
  if (!Accept(TokenType::kRBrace)) return {};
  Expr* map = builder_.NewAggregate(ExprKind::kMap, offset, std::span(entries_).subspan(mark));
  entries_.resize(mark);
  return {map, height};
}

void AppendQualifiedName(const Expr& expr, std::string& out) {
  if (expr.kind == ExprKind::kSelect) {
    AppendQualifiedName(*expr.operand, out);
    out += '.';
  }
  out += expr.text;
}

Parsed Parser::ParseMessage(const Expr& name) {
  const std::int32_t offset = token_.offset;
  const std::size_t mark = entries_.size();
  std::string type_name;
  AppendQualifiedName(name, type_name);
  int height = 0;
  Advance();
  if (token_.type == TokenType::kComma) {
    Advance();
  } else {
    while (token_.type != TokenType::kRBrace) {
      Entry entry;
      entry.optional = Accept(TokenType::kQuestion);
      if (entry.optional && !env_.has(Library::kOptionals)) return {};
      if (token_.type != TokenType::kIdentifier) return {};
      entry.field = token_.text;
      Advance();
      entry.offset = token_.offset;
      entry.id = builder_.NextId();
      if (!Accept(TokenType::kColon)) return {};
      const Parsed value = ParseExpr();
      if (value.expr == nullptr) return {};
      entry.value = value.expr;
      height = std::max(height, value.height);
      entries_.push_back(entry);
      if (!Accept(TokenType::kComma)) break;
    }
  }
  if (!Accept(TokenType::kRBrace)) return {};
  Expr* message = builder_.NewAggregate(ExprKind::kStruct, offset, std::span(entries_).subspan(mark));
  message->text = builder_.arena().Copy(type_name);
  entries_.resize(mark);
  return {message, height};
}

}  // namespace

void Parse(const Environment& env, Ast& ast, Issues& issues) {
  if (ast.source().size() > kExpressionCodePointsMax) {
    issues.Report(-1, "expression code point size exceeds limit: size: " + std::to_string(ast.source().size()) +
                          ", limit " + std::to_string(kExpressionCodePointsMax));
    return;
  }
  Parser parser(env, ast);
  if (Expr* root = parser.ParseAll()) {
    ast.set_root(root);
    ast.set_id_count(parser.id_count());
    return;
  }
  ParseWithRecovery(env, ast, issues);
}

}  // namespace keelson::cel
