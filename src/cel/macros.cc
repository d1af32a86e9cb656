#include <array>
#include <optional>

#include "cel/expr_builder.h"

namespace keelson::cel {
namespace {

constexpr std::string_view kLegacyAccumulator = "__result__";
constexpr std::string_view kOverwritesAccumulator = "iteration variable overwrites accumulator variable";

bool IsAccumulator(std::string_view name) { return name == kAccumulator || name == kLegacyAccumulator; }

// The name of the iteration variable, or nothing with `error` set.
std::optional<std::string_view> IterVar(const Expr& arg, std::string_view message, MacroError& error) {
  if (arg.kind != ExprKind::kIdent) {
    error = {arg.offset, message, {}};
    return std::nullopt;
  }
  return arg.text;
}

bool IsNumericLiteral(const Expr& expr) {
  return expr.literal == LiteralKind::kInt || expr.literal == LiteralKind::kUint ||
         expr.literal == LiteralKind::kDouble;
}

// Arguments of math.least() and math.greatest() that can never be numbers.
bool CannotBeNumber(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kLiteral:
      return !IsNumericLiteral(expr);
    case ExprKind::kList:
    case ExprKind::kMap:
    case ExprKind::kStruct:
    case ExprKind::kUnspecified:
      return true;
    default:
      return false;
  }
}

}  // namespace

Expr* ExprBuilder::CallOrMacro(std::int32_t offset, std::string_view function, Expr* target,
                               std::span<Expr* const> args, MacroError& error) {
  if (Expr* expanded = ExpandMacro(offset, function, target, args, error)) return expanded;
  if (!error.message.empty()) return nullptr;
  return target == nullptr ? NewCall(offset, function, args) : NewMemberCall(offset, function, target, args);
}

Expr* ExprBuilder::ExpandMacro(std::int32_t offset, std::string_view function, Expr* target,
                               std::span<Expr* const> args, MacroError& error) {
  if (!env_.macros()) return nullptr;
  if (target != nullptr) return ExpandReceiverMacro(offset, function, target, args, error);
  if (function != "has" || args.size() != 1) return nullptr;
  if (args[0]->kind != ExprKind::kSelect) {
    error = {args[0]->offset, "invalid argument to has() macro", {}};
    return nullptr;
  }
  Expr* test = NewSelect(offset, args[0]->operand, args[0]->text);
  test->test_only = true;
  return test;
}

Expr* ExprBuilder::ExpandReceiverMacro(std::int32_t offset, std::string_view function, Expr* target,
                                       std::span<Expr* const> args, MacroError& error) {
  const std::size_t n = args.size();
  if (env_.has(Library::kMath) && (function == "least" || function == "greatest"))
    return ExpandMath(offset, function, target, args, error);
  if (n == 2) {
    std::optional<Quantifier> quantifier;
    if (function == "all") quantifier = Quantifier::kAll;
    if (function == "exists") quantifier = Quantifier::kExists;
    if (function == "exists_one") quantifier = Quantifier::kExistsOne;
    if (quantifier) {
      const auto name = IterVar(*args[0], "argument must be a simple name", error);
      if (!name) return nullptr;
      if (IsAccumulator(*name)) {
        error = {args[0]->offset, kOverwritesAccumulator, {}};
        return nullptr;
      }
      return MakeQuantifier(*quantifier, offset, *name, {}, target, args[1]);
    }
    if (function == "filter") return ExpandFilter(offset, target, args, error);
    if (env_.has(Library::kOptionals) && function == "optMap") return ExpandOptMap(offset, false, target, args, error);
    if (env_.has(Library::kOptionals) && function == "optFlatMap")
      return ExpandOptMap(offset, true, target, args, error);
    if (env_.has(Library::kExtLists) && function == "sortBy") return ExpandSortBy(offset, target, args, error);
  }
  if (function == "map" && (n == 2 || n == 3)) return ExpandMap(offset, target, args, error);
  if (env_.has(Library::kTwoVarComprehensions) && (n == 3 || n == 4))
    if (Expr* expanded = ExpandTwoVar(offset, function, target, args, error); expanded || !error.message.empty())
      return expanded;
  if (env_.has(Library::kBindings) && function == "bind" && n == 3 && target->kind == ExprKind::kIdent &&
      target->text == "cel") {
    const auto name = IterVar(*args[0], "cel.bind() variable names must be simple identifiers", error);
    if (!name) return nullptr;
    return MakeFold(offset, {.iter_var = kUnusedIterVar,
                             .accu_var = *name,
                             .range = NewAggregate(ExprKind::kList, offset, {}),
                             .init = args[1],
                             .condition = NewBool(offset, false),
                             .step = NewIdent(offset, *name),
                             .result = args[2]});
  }
  return nullptr;
}

Expr* ExprBuilder::MakeQuantifier(Quantifier kind, std::int32_t offset, std::string_view iter_var,
                                  std::string_view iter_var2, Expr* target, Expr* predicate) {
  Comprehension fold{.iter_var = iter_var, .iter_var2 = iter_var2, .accu_var = kAccumulator, .range = target};
  switch (kind) {
    case Quantifier::kAll:
      fold.init = NewBool(offset, true);
      fold.condition = NewCall(offset, operators::kNotStrictlyFalse, {Accu(offset)});
      fold.step = NewCall(offset, operators::kLogicalAnd, {Accu(offset), predicate});
      fold.result = Accu(offset);
      break;
    case Quantifier::kExists:
      fold.init = NewBool(offset, false);
      fold.condition =
          NewCall(offset, operators::kNotStrictlyFalse, {NewCall(offset, operators::kLogicalNot, {Accu(offset)})});
      fold.step = NewCall(offset, operators::kLogicalOr, {Accu(offset), predicate});
      fold.result = Accu(offset);
      break;
    case Quantifier::kExistsOne:
      fold.init = NewInt(offset, 0);
      fold.condition = NewBool(offset, true);
      fold.step =
          NewCall(offset, operators::kConditional,
                  {predicate, NewCall(offset, operators::kAdd, {Accu(offset), NewInt(offset, 1)}), Accu(offset)});
      fold.result = NewCall(offset, operators::kEquals, {Accu(offset), NewInt(offset, 1)});
      break;
  }
  return MakeFold(offset, fold);
}

Expr* ExprBuilder::ExpandMap(std::int32_t offset, Expr* target, std::span<Expr* const> args, MacroError& error) {
  const auto name = IterVar(*args[0], "argument is not an identifier", error);
  if (!name) return nullptr;
  if (IsAccumulator(*name)) {
    error = {args[0]->offset, kOverwritesAccumulator, {}};
    return nullptr;
  }
  const Entry element{.value = args.back()};
  Expr* step = NewCall(offset, operators::kAdd, {Accu(offset), NewAggregate(ExprKind::kList, offset, {&element, 1})});
  if (args.size() == 3) step = NewCall(offset, operators::kConditional, {args[1], step, Accu(offset)});
  return MakeFold(offset, {.iter_var = *name,
                           .accu_var = kAccumulator,
                           .range = target,
                           .init = NewAggregate(ExprKind::kList, offset, {}),
                           .condition = NewBool(offset, true),
                           .step = step,
                           .result = Accu(offset)});
}

Expr* ExprBuilder::ExpandFilter(std::int32_t offset, Expr* target, std::span<Expr* const> args, MacroError& error) {
  const auto name = IterVar(*args[0], "argument is not an identifier", error);
  if (!name) return nullptr;
  if (IsAccumulator(*name)) {
    error = {args[0]->offset, kOverwritesAccumulator, {}};
    return nullptr;
  }
  const Entry element{.value = args[0]};
  Expr* step = NewCall(offset, operators::kAdd, {Accu(offset), NewAggregate(ExprKind::kList, offset, {&element, 1})});
  step = NewCall(offset, operators::kConditional, {args[1], step, Accu(offset)});
  return MakeFold(offset, {.iter_var = *name,
                           .accu_var = kAccumulator,
                           .range = target,
                           .init = NewAggregate(ExprKind::kList, offset, {}),
                           .condition = NewBool(offset, true),
                           .step = step,
                           .result = Accu(offset)});
}

Expr* ExprBuilder::ExpandTwoVar(std::int32_t offset, std::string_view function, Expr* target,
                                std::span<Expr* const> args, MacroError& error) {
  const bool quantifier = args.size() == 3 && (function == "all" || function == "exists" || function == "existsOne" ||
                                               function == "exists_one");
  const bool transform = function == "transformList" || function == "transformMap" || function == "transformMapEntry";
  if (!quantifier && !transform) return nullptr;
  const auto first = IterVar(*args[0], "argument must be a simple name", error);
  if (!first) return nullptr;
  const auto second = IterVar(*args[1], "argument must be a simple name", error);
  if (!second) return nullptr;
  if (*first == *second) {
    error = {args[1]->offset, "duplicate variable name: ", *first};
    return nullptr;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (!IsAccumulator(args[i]->text)) continue;
    error = {args[i]->offset, kOverwritesAccumulator, {}};
    return nullptr;
  }
  if (quantifier) {
    const Quantifier kind = function == "all"      ? Quantifier::kAll
                            : function == "exists" ? Quantifier::kExists
                                                   : Quantifier::kExistsOne;
    return MakeQuantifier(kind, offset, *first, *second, target, args[2]);
  }
  Expr* value = args.back();
  Expr* step = nullptr;
  if (function == "transformList") {
    const Entry element{.value = value};
    step = NewCall(offset, operators::kAdd, {Accu(offset), NewAggregate(ExprKind::kList, offset, {&element, 1})});
  } else if (function == "transformMap") {
    step = NewCall(offset, "cel.@mapInsert", {Accu(offset), NewIdent(offset, *first), value});
  } else {
    step = NewCall(offset, "cel.@mapInsert", {Accu(offset), value});
  }
  if (args.size() == 4) step = NewCall(offset, operators::kConditional, {args[2], step, Accu(offset)});
  const ExprKind init = function == "transformList" ? ExprKind::kList : ExprKind::kMap;
  return MakeFold(offset, {.iter_var = *first,
                           .iter_var2 = *second,
                           .accu_var = kAccumulator,
                           .range = target,
                           .init = NewAggregate(init, offset, {}),
                           .condition = NewBool(offset, true),
                           .step = step,
                           .result = Accu(offset)});
}

Expr* ExprBuilder::ExpandOptMap(std::int32_t offset, bool flat, Expr* target, std::span<Expr* const> args,
                                MacroError& error) {
  const auto name = IterVar(*args[0],
                            flat ? std::string_view("optFlatMap() variable name must be a simple identifier")
                                 : std::string_view("optMap() variable name must be a simple identifier"),
                            error);
  if (!name) return nullptr;
  Expr* present = NewMemberCall(offset, "hasValue", target, {});
  Expr* mapped = MakeFold(offset, {.iter_var = kUnusedIterVar,
                                   .accu_var = *name,
                                   .range = NewAggregate(ExprKind::kList, offset, {}),
                                   .init = NewMemberCall(offset, "value", Copy(*target, offset), {}),
                                   .condition = NewBool(offset, false),
                                   .step = NewIdent(offset, *name),
                                   .result = args[1]});
  if (!flat) mapped = NewCall(offset, "optional.of", {mapped});
  return NewCall(offset, operators::kConditional, {present, mapped, NewCall(offset, "optional.none", {})});
}

Expr* ExprBuilder::ExpandSortBy(std::int32_t offset, Expr* target, std::span<Expr* const> args, MacroError& error) {
  constexpr std::string_view kInput = "@__sortBy_input__";
  if (target->kind == ExprKind::kLiteral || target->kind == ExprKind::kMap || target->kind == ExprKind::kStruct ||
      target->kind == ExprKind::kUnspecified) {
    error = {target->offset,
             "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
             {}};
    return nullptr;
  }
  Expr* keys = ExpandMap(offset, NewIdent(offset, kInput), args, error);
  if (keys == nullptr) return nullptr;
  Expr* sorted = NewMemberCall(offset, "@sortByAssociatedKeys", NewIdent(offset, kInput), std::array{keys});
  return MakeFold(offset, {.iter_var = kUnusedIterVar,
                           .accu_var = kInput,
                           .range = NewAggregate(ExprKind::kList, offset, {}),
                           .init = target,
                           .condition = NewBool(offset, false),
                           .step = NewIdent(offset, kInput),
                           .result = sorted});
}

Expr* ExprBuilder::ExpandMath(std::int32_t offset, std::string_view function, Expr* target, std::span<Expr* const> args,
                              MacroError& error) {
  if (target->kind != ExprKind::kIdent || target->text != "math") return nullptr;
  const bool least = function == "least";
  const std::string_view implementation = least ? "math.@min" : "math.@max";
  if (args.empty()) {
    error = {target->offset,
             least ? std::string_view("math.least() requires at least one argument")
                   : std::string_view("math.greatest() requires at least one argument"),
             {}};
    return nullptr;
  }
  if (args.size() == 1) {
    bool good = !CannotBeNumber(*args[0]);
    if (args[0]->kind == ExprKind::kList) {
      good = args[0]->count > 0;
      for (const auto& element : args[0]->elements()) good = good && !CannotBeNumber(*element.value);
    }
    if (good) return NewCall(offset, implementation, args);
    error = {args[0]->offset,
             least ? std::string_view("math.least() invalid single argument value")
                   : std::string_view("math.greatest() invalid single argument value"),
             {}};
    return nullptr;
  }
  for (const Expr* arg : args) {
    if (!CannotBeNumber(*arg)) continue;
    error = {arg->offset,
             least ? std::string_view("math.least() simple literal arguments must be numeric")
                   : std::string_view("math.greatest() simple literal arguments must be numeric"),
             {}};
    return nullptr;
  }
  if (args.size() == 2) return NewCall(offset, implementation, args);
  std::vector<Entry> entries;
  for (Expr* arg : args) entries.push_back({.value = arg});
  return NewCall(offset, implementation, {NewAggregate(ExprKind::kList, offset, entries)});
}

// Recursion is bounded by the parser's limits on nesting.
Expr* ExprBuilder::Copy(const Expr& expr, std::int32_t macro_offset) {
  Expr* copy = arena_.New<Expr>(expr);
  copy->id = next_id_++;
  if (overflowed()) return copy;
  if (copy->operand != nullptr) copy->operand = Copy(*copy->operand, macro_offset);
  switch (expr.kind) {
    case ExprKind::kCall:
      copy->args = arena_.NewArray<Expr*>(expr.count);
      for (std::uint32_t i = 0; i < expr.count; ++i) copy->args[i] = Copy(*expr.args[i], macro_offset);
      break;
    case ExprKind::kList:
    case ExprKind::kMap:
    case ExprKind::kStruct:
      copy->entries = arena_.NewArray<Entry>(expr.count);
      for (std::uint32_t i = 0; i < expr.count; ++i) {
        Entry entry = expr.entries[i];
        if (expr.kind != ExprKind::kList) {
          entry.id = next_id_++;
          entry.offset = macro_offset;
        }
        if (entry.key != nullptr) entry.key = Copy(*entry.key, macro_offset);
        entry.value = Copy(*entry.value, macro_offset);
        copy->entries[i] = entry;
      }
      break;
    case ExprKind::kComprehension: {
      Comprehension fold = *expr.fold;
      for (Expr** part : {&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result})
        *part = Copy(**part, macro_offset);
      copy->fold = arena_.New<Comprehension>(fold);
      break;
    }
    default:
      break;
  }
  return copy;
}

}  // namespace keelson::cel
