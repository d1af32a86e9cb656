#include "cel/expr_builder.h"

#include <algorithm>
#include <array>

namespace keelson::cel {

Expr* ExprBuilder::NewBool(std::int32_t offset, bool value) {
  Expr* expr = NewExpr(ExprKind::kLiteral, offset);
  expr->literal = LiteralKind::kBool;
  expr->bool_value = value;
  return expr;
}

Expr* ExprBuilder::NewInt(std::int32_t offset, std::int64_t value) {
  Expr* expr = NewExpr(ExprKind::kLiteral, offset);
  expr->literal = LiteralKind::kInt;
  expr->int_value = value;
  return expr;
}

Expr* ExprBuilder::NewText(std::int32_t offset, LiteralKind kind, std::string_view text) {
  Expr* expr = NewExpr(ExprKind::kLiteral, offset);
  expr->literal = kind;
  expr->text = text;
  return expr;
}

Expr* ExprBuilder::NewIdent(std::int32_t offset, std::string_view name) {
  Expr* expr = NewExpr(ExprKind::kIdent, offset);
  expr->text = name;
  return expr;
}

Expr* ExprBuilder::NewSelect(std::int32_t offset, Expr* operand, std::string_view field) {
  Expr* expr = NewExpr(ExprKind::kSelect, offset);
  expr->operand = operand;
  expr->text = field;
  return expr;
}

Expr* ExprBuilder::NewMemberCall(std::int32_t offset, std::string_view function, Expr* target,
                                 std::span<Expr* const> args) {
  Expr* expr = NewCall(offset, function, args);
  expr->operand = target;
  return expr;
}

Expr* ExprBuilder::NewCall(std::int32_t offset, std::string_view function, std::span<Expr* const> args) {
  Expr* expr = NewExpr(ExprKind::kCall, offset);
  expr->text = function;
  expr->count = static_cast<std::uint32_t>(args.size());
  expr->args = arena_.NewArray<Expr*>(args.size());
  std::copy(args.begin(), args.end(), expr->args);
  return expr;
}

Expr* ExprBuilder::NewAggregate(ExprKind kind, std::int32_t offset, std::span<const Entry> entries) {
  Expr* expr = NewExpr(kind, offset);
  expr->count = static_cast<std::uint32_t>(entries.size());
  expr->entries = arena_.NewArray<Entry>(entries.size());
  std::copy(entries.begin(), entries.end(), expr->entries);
  return expr;
}

Expr* ExprBuilder::MakeFold(std::int32_t offset, const Comprehension& parts) {
  Expr* expr = NewExpr(ExprKind::kComprehension, offset);
  expr->fold = arena_.New<Comprehension>(parts);
  return expr;
}

Expr* ExprBuilder::Balance(std::string_view function, std::span<Expr* const> terms,
                           std::span<const std::int32_t> offsets) {
  if (terms.size() == 1) return terms[0];
  const std::size_t mid = offsets.size() / 2;  // (lo + hi + 1) / 2 with lo = 0
  Expr* left = Balance(function, terms.first(mid + 1), offsets.first(mid));
  Expr* right = Balance(function, terms.subspan(mid + 1), offsets.subspan(mid + 1));
  return NewCall(offsets[mid], function, {left, right});
}

}  // namespace keelson::cel
