#include "cel/syntax_visitor.h"

#include <utility>

#include "cel/literals.h"
#include "cel/parser.h"

namespace keelson::cel::grammar {
namespace {

// Follows chains of rules that add nothing to the tree.
const Node* Unnest(const Node* node) {
  while (node != nullptr) {
    switch (node->rule) {
      case Rule::kExpr:
        if (node->token(Label::kOp) != nullptr) return node;
        node = node->node(Label::kE);
        break;
      case Rule::kConditionalOr:
      case Rule::kConditionalAnd:
        if (node->token(Label::kOps) != nullptr) return node;
        node = node->node(Label::kE);
        break;
      case Rule::kRelation:
      case Rule::kCalc:
        if (node->token(Label::kOp) != nullptr) return node;
        node = node->node(Label::kChild);
        break;
      default:
        switch (node->alternative) {
          case Alternative::kMemberExpr:
          case Alternative::kPrimaryExpr:
          case Alternative::kConstantLiteral:
            node = node->node(Label::kChild);
            break;
          case Alternative::kNested:
            node = node->node(Label::kE);
            break;
          default:
            return node;
        }
    }
  }
  return node;
}

std::int32_t OffsetOf(const Token* token) { return token == nullptr ? -1 : token->offset; }
std::int32_t StartOf(const Node& node) { return OffsetOf(node.start); }

std::string_view BinaryOperator(TokenType type) {
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
    case TokenType::kPlus:
      return operators::kAdd;
    case TokenType::kMinus:
      return operators::kSubtract;
    case TokenType::kStar:
      return operators::kMultiply;
    case TokenType::kSlash:
      return operators::kDivide;
    case TokenType::kPercent:
      return operators::kModulo;
    default:
      return {};
  }
}

struct FieldName {
  std::string_view name;
  std::string_view error;
};

// The name in an escapeIdent; names in backticks are off in Kubernetes.
FieldName NameOf(const Node* ident) {
  if (ident != nullptr && ident->alternative == Alternative::kSimpleIdentifier) {
    const Token* id = ident->token(Label::kId);
    return {id == nullptr ? std::string_view() : id->text, {}};
  }
  if (ident != nullptr && ident->alternative == Alternative::kEscapedIdentifier) return {{}, "unsupported syntax: '`'"};
  return {{}, "unsupported ident kind"};
}

}  // namespace

Expr* SyntaxVisitor::Run(const Node& root) {
  Expr* expr = Visit(root.node(Label::kE));
  if (too_deep_) {
    issues_.Report(-1, "max recursion depth exceeded");
    return nullptr;
  }
  return expr;
}

Expr* SyntaxVisitor::VisitCounted(const Node& node, Expr* (SyntaxVisitor::*visit)(const Node&)) {
  if (++depth_ > kRecursionMax) {
    too_deep_ = true;
    return nullptr;
  }
  Expr* expr = (this->*visit)(node);
  --depth_;
  return expr;
}

Expr* SyntaxVisitor::Visit(const Node* tree) {
  if (too_deep_) return nullptr;
  const Node* node = Unnest(tree);
  if (node == nullptr) {
    if (issues_.empty()) return Report(-1, "unknown parse element encountered: <<nil>>");
    return Unspecified(kBeforeStart);
  }
  switch (node->rule) {
    case Rule::kExpr:
      return VisitCounted(*node, &SyntaxVisitor::VisitExpr);
    case Rule::kConditionalOr:
      return VisitLogical(*node, operators::kLogicalOr);
    case Rule::kConditionalAnd:
      return VisitLogical(*node, operators::kLogicalAnd);
    case Rule::kRelation:
    case Rule::kCalc:
      return VisitCounted(*node, &SyntaxVisitor::VisitBinary);
    default:
      break;
  }
  switch (node->alternative) {
    case Alternative::kLogicalNot:
      return VisitUnary(*node, operators::kLogicalNot);
    case Alternative::kNegate:
      return VisitUnary(*node, operators::kNegate);
    case Alternative::kSelect:
      return VisitCounted(*node, &SyntaxVisitor::VisitSelect);
    case Alternative::kMemberCall:
      return VisitCounted(*node, &SyntaxVisitor::VisitMemberCall);
    case Alternative::kIndex:
      return VisitCounted(*node, &SyntaxVisitor::VisitIndex);
    case Alternative::kIdent:
      return VisitIdent(*node);
    case Alternative::kGlobalCall:
      return VisitGlobalCall(*node);
    case Alternative::kCreateList:
      return VisitList(*node);
    case Alternative::kCreateStruct:
      return VisitMap(*node);
    case Alternative::kCreateMessage:
      return VisitMessage(*node);
    default:
      break;
  }
  if (node->rule == Rule::kLiteral && node->alternative != Alternative::kPlain) return VisitLiteral(*node);
  if (node->rule == Rule::kUnary) return builder_.NewText(StartOf(*node), LiteralKind::kString, "<<error>>");
  return Unspecified(kBeforeStart);
}

Expr* SyntaxVisitor::VisitExpr(const Node& node) {
  Expr* condition = Visit(node.node(Label::kE));
  Expr* yes = Visit(node.node(Label::kE1));
  Expr* no = Visit(node.node(Label::kE2));
  if (too_deep_) return nullptr;
  return builder_.NewCall(OffsetOf(node.token(Label::kOp)), operators::kConditional, {condition, yes, no});
}

Expr* SyntaxVisitor::VisitLogical(const Node& node, std::string_view function) {
  std::vector<Expr*> terms{Visit(node.node(Label::kE))};
  std::vector<std::int32_t> offsets;
  const auto ops = node.tokens(Label::kOps);
  const auto rest = node.nodes(Label::kE1);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (i >= rest.size())
      return Report(StartOf(node), function == operators::kLogicalOr ? "unexpected character, wanted '||'"
                                                                     : "unexpected character, wanted '&&'");
    terms.push_back(Visit(rest[i]));
    offsets.push_back(ops[i]->offset);
  }
  if (too_deep_) return nullptr;
  return builder_.Balance(function, terms, offsets);
}

Expr* SyntaxVisitor::VisitBinary(const Node& node) {
  const Token* op = node.token(Label::kOp);
  const std::string_view function = BinaryOperator(op->type);
  if (function.empty()) return Report(StartOf(node), "operator not found");
  Expr* left = Visit(node.node(Label::kLeft));
  Expr* right = Visit(node.node(Label::kRight));
  if (too_deep_) return nullptr;
  return builder_.NewCall(op->offset, function, {left, right});
}

Expr* SyntaxVisitor::VisitUnary(const Node& node, std::string_view function) {
  const auto ops = node.tokens(Label::kOps);
  Expr* operand = Visit(node.node(Label::kChild));
  if (too_deep_ || ops.size() % 2 == 0) return operand;
  return builder_.NewCall(ops[0]->offset, function, {operand});
}

Expr* SyntaxVisitor::VisitSelect(const Node& node) {
  Expr* operand = Visit(node.node(Label::kLeft));
  if (too_deep_) return nullptr;
  const Token* op = node.token(Label::kOp);
  const Node* ident = node.node(Label::kId);
  if (ident == nullptr || op == nullptr) return Unspecified(StartOf(node));
  const FieldName field = NameOf(ident);
  if (!field.error.empty()) issues_.Report(StartOf(*ident), std::string(field.error));  // and on, with an empty name
  if (node.token(Label::kOpt) == nullptr) return builder_.NewSelect(op->offset, operand, field.name);
  if (!env_.has(Library::kOptionals)) return Report(op->offset, "unsupported syntax '.?'");
  Expr* name = builder_.NewText(StartOf(*ident), LiteralKind::kString, field.name);
  return builder_.NewCall(op->offset, operators::kOptSelect, {operand, name});
}

std::vector<Expr*> SyntaxVisitor::VisitArguments(const Node* list) {
  std::vector<Expr*> args;
  if (list == nullptr) return args;
  for (const Node* arg : list->nodes(Label::kE)) args.push_back(Visit(arg));
  return args;
}

Expr* SyntaxVisitor::CallOrMacro(std::int32_t offset, std::string_view function, Expr* target,
                                 std::span<Expr* const> args) {
  if (too_deep_) return nullptr;
  MacroError error;
  if (Expr* call = builder_.CallOrMacro(offset, function, target, args, error)) return call;
  return Report(error.offset, std::string(error.message) + std::string(error.name));
}

Expr* SyntaxVisitor::VisitMemberCall(const Node& node) {
  Expr* target = Visit(node.node(Label::kLeft));
  if (too_deep_) return nullptr;
  const Token* id = node.token(Label::kId);
  if (id == nullptr) return Unspecified(StartOf(node));
  const auto args = VisitArguments(node.node(Label::kArgs));
  return CallOrMacro(OffsetOf(node.token(Label::kOpen)), id->text, target, args);
}

Expr* SyntaxVisitor::VisitIndex(const Node& node) {
  Expr* target = Visit(node.node(Label::kLeft));
  const Token* op = node.token(Label::kOp);
  if (too_deep_) return nullptr;
  if (op == nullptr) return Unspecified(StartOf(node));
  Expr* index = Visit(node.node(Label::kIndex));
  if (too_deep_) return nullptr;
  const bool optional = node.token(Label::kOpt) != nullptr;
  if (optional && !env_.has(Library::kOptionals)) return Report(op->offset, "unsupported syntax '[?'");
  return builder_.NewCall(op->offset, optional ? operators::kOptIndex : operators::kIndex, {target, index});
}

Expr* SyntaxVisitor::VisitIdent(const Node& node) {
  const Token* id = node.token(Label::kId);
  if (id == nullptr) return Unspecified(StartOf(node));
  if (IsReservedIdentifier(id->text)) return Report(StartOf(node), "reserved identifier: " + std::string(id->text));
  const bool dot = node.token(Label::kLeadingDot) != nullptr;
  return builder_.NewIdent(id->offset, dot ? builder_.arena().Concat(".", id->text) : id->text);
}

Expr* SyntaxVisitor::VisitGlobalCall(const Node& node) {
  const Token* id = node.token(Label::kId);
  if (id == nullptr) return Unspecified(StartOf(node));
  if (IsReservedIdentifier(id->text)) return Report(StartOf(node), "reserved identifier: " + std::string(id->text));
  const bool dot = node.token(Label::kLeadingDot) != nullptr;
  const auto args = VisitArguments(node.node(Label::kArgs));
  return CallOrMacro(OffsetOf(node.token(Label::kOp)), dot ? builder_.arena().Concat(".", id->text) : id->text, nullptr,
                     args);
}

Expr* SyntaxVisitor::VisitList(const Node& node) {
  std::vector<Entry> entries;
  if (const Node* list = node.node(Label::kElems)) {
    for (const Node* element : list->nodes(Label::kElems)) {
      Entry entry{.value = Visit(element->node(Label::kE))};
      if (const Token* opt = element->token(Label::kOpt)) {
        if (!env_.has(Library::kOptionals)) {
          Report(opt->offset, "unsupported syntax '?'");
        } else {
          entry.optional = true;
        }
      }
      entries.push_back(entry);
    }
  }
  if (too_deep_) return nullptr;
  return builder_.NewAggregate(ExprKind::kList, OffsetOf(node.token(Label::kOp)), entries);
}

Expr* SyntaxVisitor::VisitMap(const Node& node) {
  std::vector<Entry> entries;
  if (const Node* list = node.node(Label::kEntries)) {
    const auto keys = list->nodes(Label::kKeys);
    const auto cols = list->tokens(Label::kCols);
    const auto values = list->nodes(Label::kValues);
    for (std::size_t i = 0; i < cols.size(); ++i) {
      if (i >= keys.size() || i >= values.size()) {
        entries.clear();
        break;
      }
      Entry entry{.id = builder_.NextId(), .offset = cols[i]->offset};
      entry.optional = keys[i]->token(Label::kOpt) != nullptr;
      if (entry.optional && !env_.has(Library::kOptionals)) {
        Report(StartOf(*keys[i]), "unsupported syntax '?'");
        continue;
      }
      entry.key = Visit(keys[i]->node(Label::kE));
      entry.value = Visit(values[i]);
      entries.push_back(entry);
    }
  }
  if (too_deep_) return nullptr;
  return builder_.NewAggregate(ExprKind::kMap, OffsetOf(node.token(Label::kOp)), entries);
}

Expr* SyntaxVisitor::VisitMessage(const Node& node) {
  std::string name = node.token(Label::kLeadingDot) != nullptr ? "." : "";
  bool first = true;
  for (const Token* id : node.tokens(Label::kIds)) {
    if (!first) name += '.';
    first = false;
    name += id->text;
  }
  std::vector<Entry> entries;
  if (const Node* list = node.node(Label::kEntries)) {
    const auto fields = list->nodes(Label::kFields);
    const auto cols = list->tokens(Label::kCols);
    const auto values = list->nodes(Label::kValues);
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i >= cols.size() || i >= values.size()) {
        entries.clear();
        break;
      }
      Entry entry{.id = builder_.NextId(), .offset = cols[i]->offset};
      entry.optional = fields[i]->token(Label::kOpt) != nullptr;
      if (entry.optional && !env_.has(Library::kOptionals)) {
        Report(StartOf(*fields[i]), "unsupported syntax '?'");
        continue;
      }
      const FieldName field = NameOf(fields[i]->node(Label::kId));
      if (!field.error.empty()) {
        Report(StartOf(*list), std::string(field.error));
        continue;
      }
      entry.field = field.name;
      entry.value = Visit(values[i]);
      entries.push_back(entry);
    }
  }
  if (too_deep_) return nullptr;
  Expr* message = builder_.NewAggregate(ExprKind::kStruct, OffsetOf(node.token(Label::kOp)), entries);
  message->text = builder_.arena().Copy(name);
  return message;
}

Expr* SyntaxVisitor::VisitLiteral(const Node& node) {
  const Token* token = node.token(Label::kTok);
  if (token == nullptr) return Unspecified(StartOf(node));
  const std::int32_t offset = StartOf(node);
  const bool negative = node.token(Label::kSign) != nullptr;
  Expr* expr = builder_.NewExpr(ExprKind::kLiteral, offset);
  switch (node.alternative) {
    case Alternative::kInt: {
      const auto value = ParseIntLiteral(token->text, negative);
      if (!value) return Report(offset, "invalid int literal");
      expr->literal = LiteralKind::kInt;
      expr->int_value = *value;
      return expr;
    }
    case Alternative::kUint: {
      const auto value = ParseUintLiteral(token->text);
      if (!value) return Report(offset, "invalid uint literal");
      expr->literal = LiteralKind::kUint;
      expr->uint_value = *value;
      return expr;
    }
    case Alternative::kDouble: {
      const auto value = ParseDoubleLiteral(token->text, negative);
      if (!value) return Report(offset, "invalid double literal");
      expr->literal = LiteralKind::kDouble;
      expr->double_value = *value;
      return expr;
    }
    case Alternative::kString:
    case Alternative::kBytes: {
      const bool bytes = node.alternative == Alternative::kBytes;
      const auto text = Unescape(bytes ? token->text.substr(1) : token->text, bytes, builder_.arena());
      if (!text.error.empty()) issues_.Report(offset, std::string(text.error));
      expr->literal = bytes ? LiteralKind::kBytes : LiteralKind::kString;
      expr->text = text.value;
      return expr;
    }
    case Alternative::kBoolTrue:
    case Alternative::kBoolFalse:
      expr->literal = LiteralKind::kBool;
      expr->bool_value = node.alternative == Alternative::kBoolTrue;
      return expr;
    default:
      return expr;
  }
}

}  // namespace keelson::cel::grammar
