// Makes the nodes of a tree while it is parsed, and expands macros.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "cel/ast.h"
#include "cel/environment.h"

namespace keelson::cel {

namespace operators {
inline constexpr std::string_view kConditional = "_?_:_";
inline constexpr std::string_view kLogicalAnd = "_&&_";
inline constexpr std::string_view kLogicalOr = "_||_";
inline constexpr std::string_view kLogicalNot = "!_";
inline constexpr std::string_view kNegate = "-_";
inline constexpr std::string_view kEquals = "_==_";
inline constexpr std::string_view kNotEquals = "_!=_";
inline constexpr std::string_view kLess = "_<_";
inline constexpr std::string_view kLessEquals = "_<=_";
inline constexpr std::string_view kGreater = "_>_";
inline constexpr std::string_view kGreaterEquals = "_>=_";
inline constexpr std::string_view kAdd = "_+_";
inline constexpr std::string_view kSubtract = "_-_";
inline constexpr std::string_view kMultiply = "_*_";
inline constexpr std::string_view kDivide = "_/_";
inline constexpr std::string_view kModulo = "_%_";
inline constexpr std::string_view kIndex = "_[_]";
inline constexpr std::string_view kOptIndex = "_[?_]";
inline constexpr std::string_view kOptSelect = "_?._";
inline constexpr std::string_view kIn = "@in";
inline constexpr std::string_view kNotStrictlyFalse = "@not_strictly_false";
}  // namespace operators

inline constexpr std::string_view kAccumulator = "@result";
inline constexpr std::string_view kUnusedIterVar = "#unused";

// A macro that was matched but whose arguments are not well-formed.
struct MacroError {
  std::int32_t offset = -1;
  std::string_view message;
  std::string_view name;  // appended to the message
};

class ExprBuilder {
 public:
  ExprBuilder(Ast& ast, const Environment& env) : ast_(ast), arena_(ast.arena()), env_(env) {}

  Expr* NewExpr(ExprKind kind, std::int32_t offset) {
    Expr* expr = arena_.New<Expr>();
    expr->kind = kind;
    expr->id = next_id_++;
    expr->offset = offset;
    return expr;
  }
  Expr* NewBool(std::int32_t offset, bool value);
  Expr* NewInt(std::int32_t offset, std::int64_t value);
  Expr* NewText(std::int32_t offset, LiteralKind kind, std::string_view text);
  Expr* NewIdent(std::int32_t offset, std::string_view name);
  Expr* NewSelect(std::int32_t offset, Expr* operand, std::string_view field);
  Expr* NewCall(std::int32_t offset, std::string_view function, std::span<Expr* const> args);
  Expr* NewCall(std::int32_t offset, std::string_view function, std::initializer_list<Expr*> args) {
    return NewCall(offset, function, std::span<Expr* const>(args.begin(), args.size()));
  }
  Expr* NewMemberCall(std::int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args);
  Expr* NewAggregate(ExprKind kind, std::int32_t offset, std::span<const Entry> entries);
  std::uint32_t NextId() { return next_id_++; }
  // optMap() copies its target: chains of it grow exponentially, in cel-go without a bound.
  static constexpr std::uint32_t kNodesMax = 1'000'000;
  bool overflowed() const { return next_id_ > kNodesMax; }
  std::uint32_t next_id() const { return next_id_; }
  base::Arena& arena() { return arena_; }

  // The call, or the expansion where it is a macro of the environment. Null with `error` set for a macro whose
  // arguments are wrong.
  Expr* CallOrMacro(std::int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args,
                    MacroError& error);
  // Terms of a chain of && or ||, balanced as cel-go balances them. `offsets` are those of the operators.
  Expr* Balance(std::string_view function, std::span<Expr* const> terms, std::span<const std::int32_t> offsets);

 private:
  struct Fold;
  enum class Quantifier : std::uint8_t { kAll, kExists, kExistsOne };

  Expr* ExpandMacro(std::int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args,
                    MacroError& error);
  Expr* ExpandReceiverMacro(std::int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args,
                            MacroError& error);
  Expr* ExpandTwoVar(std::int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args,
                     MacroError& error);
  Expr* ExpandMap(std::int32_t offset, Expr* target, std::span<Expr* const> args, MacroError& error);
  Expr* ExpandFilter(std::int32_t offset, Expr* target, std::span<Expr* const> args, MacroError& error);
  Expr* ExpandOptMap(std::int32_t offset, bool flat, Expr* target, std::span<Expr* const> args, MacroError& error);
  Expr* ExpandSortBy(std::int32_t offset, Expr* target, std::span<Expr* const> args, MacroError& error);
  Expr* ExpandMath(std::int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args,
                   MacroError& error);
  Expr* MakeQuantifier(Quantifier kind, std::int32_t offset, std::string_view iter_var, std::string_view iter_var2,
                       Expr* target, Expr* predicate);
  Expr* MakeFold(std::int32_t offset, const Comprehension& parts);
  Expr* Accu(std::int32_t offset) { return NewIdent(offset, kAccumulator); }
  Expr* Copy(const Expr& expr, std::int32_t macro_offset);

  Ast& ast_;
  base::Arena& arena_;
  const Environment& env_;
  std::uint32_t next_id_ = 1;
};

}  // namespace keelson::cel
