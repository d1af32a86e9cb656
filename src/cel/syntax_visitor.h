// Parse tree to expression tree, with the errors that cel-go reports after parsing: reserved identifiers, literals out
// of range, macros with wrong arguments, depth.
#pragma once

#include <string>
#include <string_view>

#include "cel/expr_builder.h"
#include "cel/issues.h"
#include "cel/syntax_tree.h"

namespace keelson::cel::grammar {

class SyntaxVisitor {
 public:
  SyntaxVisitor(const Environment& env, ExprBuilder& builder, Issues& issues)
      : env_(env), builder_(builder), issues_(issues) {}
  // Null where the limit of nested operators was exceeded.
  Expr* Run(const Node& root);

 private:
  Expr* Visit(const Node* node);
  Expr* VisitCounted(const Node& node, Expr* (SyntaxVisitor::*visit)(const Node&));
  Expr* VisitExpr(const Node& node);
  Expr* VisitLogical(const Node& node, std::string_view function);
  Expr* VisitBinary(const Node& node);
  Expr* VisitUnary(const Node& node, std::string_view function);
  Expr* VisitSelect(const Node& node);
  Expr* VisitMemberCall(const Node& node);
  Expr* VisitIndex(const Node& node);
  Expr* VisitIdent(const Node& node);
  Expr* VisitGlobalCall(const Node& node);
  Expr* VisitList(const Node& node);
  Expr* VisitMap(const Node& node);
  Expr* VisitMessage(const Node& node);
  Expr* VisitLiteral(const Node& node);
  std::vector<Expr*> VisitArguments(const Node* list);
  Expr* CallOrMacro(std::int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args);
  Expr* Unspecified(std::int32_t offset) { return builder_.NewExpr(ExprKind::kUnspecified, offset); }
  Expr* Report(std::int32_t offset, std::string message) {
    issues_.Report(offset, std::move(message));
    return Unspecified(offset);
  }

  const Environment& env_;
  ExprBuilder& builder_;
  Issues& issues_;
  int depth_ = 0;
  bool too_deep_ = false;
};

}  // namespace keelson::cel::grammar
