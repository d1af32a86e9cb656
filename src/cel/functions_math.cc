// The math extension library. Kubernetes does not turn it on; the conformance suite of the language does.
#include <cmath>

#include "cel/functions.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using Args = std::span<const Val>;

Val Suffixed(Evaluation& e, const Val& error, std::string_view suffix) {
  if (error.text().find(suffix) != std::string_view::npos) return error;
  return ErrorIn(e.arena, error.text(), ": ", suffix);
}

Val Identity(Evaluation&, Args args) { return args[0]; }

Val Better(Evaluation& e, const Val& first, const Val& second, std::int64_t replaces, std::string_view name) {
  if ((TraitsOf(first) & kComparer) == 0) return NoSuchOverload(first);
  const Val order = Compare(first, second);
  if (order.is_error()) return Suffixed(e, order, name);
  return order.int_value() == replaces ? second : first;
}

Val BestOf(Evaluation& e, const List& list, std::int64_t replaces, std::string_view name) {
  if (list.size == 0) return ErrorIn(e.arena, name, "(list) argument must not be empty");
  Val best = list.Get(e.arena, 0);
  for (std::uint32_t i = 1; i < list.size; ++i) best = Better(e, best, list.Get(e.arena, i), replaces, name);
  if (best.is(Tag::kInt) || best.is(Tag::kUint) || best.is(Tag::kDouble)) return best;
  return ErrorIn(e.arena, "no such overload: ", name);
}

Val MinPair(Evaluation& e, Args args) { return Better(e, args[0], args[1], 1, "math.@min"); }
Val MaxPair(Evaluation& e, Args args) { return Better(e, args[0], args[1], -1, "math.@max"); }
Val MinList(Evaluation& e, Args args) { return BestOf(e, args[0].list(), 1, "math.@min"); }
Val MaxList(Evaluation& e, Args args) { return BestOf(e, args[0].list(), -1, "math.@max"); }

Val Ceil(Evaluation&, Args args) { return Val::Double(std::ceil(args[0].double_value())); }
Val Floor(Evaluation&, Args args) { return Val::Double(std::floor(args[0].double_value())); }
Val Round(Evaluation&, Args args) { return Val::Double(std::round(args[0].double_value())); }
Val Trunc(Evaluation&, Args args) { return Val::Double(std::trunc(args[0].double_value())); }
Val IsInf(Evaluation&, Args args) { return Val::Bool(std::isinf(args[0].double_value())); }
Val IsNaN(Evaluation&, Args args) { return Val::Bool(std::isnan(args[0].double_value())); }
Val IsFinite(Evaluation&, Args args) { return Val::Bool(std::isfinite(args[0].double_value())); }

Val AbsDouble(Evaluation&, Args args) { return Val::Double(std::fabs(args[0].double_value())); }
Val AbsInt(Evaluation&, Args args) {
  const std::int64_t value = args[0].int_value();
  if (value == INT64_MIN) return Val::Error("integer overflow");
  return Val::Int(value < 0 ? -value : value);
}

Val Sign(Evaluation&, Args args) {
  const Val& value = args[0];
  if (value.is(Tag::kInt)) return Val::Int(value.int_value() < 0 ? -1 : value.int_value() > 0 ? 1 : 0);
  if (value.is(Tag::kUint)) return Val::Uint(value.uint_value() == 0 ? 0 : 1);
  const double number = value.double_value();
  if (std::isnan(number)) return value;
  return Val::Double(number > 0 ? 1 : number < 0 ? -1 : 0);
}

Val Sqrt(Evaluation&, Args args) {
  if (args[0].is(Tag::kInt)) return Val::Double(std::sqrt(static_cast<double>(args[0].int_value())));
  if (args[0].is(Tag::kUint)) return Val::Double(std::sqrt(static_cast<double>(args[0].uint_value())));
  return Val::Double(std::sqrt(args[0].double_value()));
}

Val Same(const Val& like, std::uint64_t bits) {
  return like.is(Tag::kInt) ? Val::Int(static_cast<std::int64_t>(bits)) : Val::Uint(bits);
}
Val BitAnd(Evaluation&, Args args) { return Same(args[0], args[0].uint_value() & args[1].uint_value()); }
Val BitOr(Evaluation&, Args args) { return Same(args[0], args[0].uint_value() | args[1].uint_value()); }
Val BitXor(Evaluation&, Args args) { return Same(args[0], args[0].uint_value() ^ args[1].uint_value()); }
Val BitNot(Evaluation&, Args args) { return Same(args[0], ~args[0].uint_value()); }

Val Shift(Evaluation& e, Args args, bool left) {
  const std::int64_t bits = args[1].int_value();
  if (bits < 0)
    return ErrorIn(e.arena, left ? "math.bitShiftLeft()" : "math.bitShiftRight()",
                   " negative offset: ", std::to_string(bits));
  const std::uint64_t value = args[0].uint_value();
  return Same(args[0], bits > 63 ? 0 : left ? value << bits : value >> bits);
}
Val ShiftLeft(Evaluation& e, Args args) { return Shift(e, args, true); }
Val ShiftRight(Evaluation& e, Args args) { return Shift(e, args, false); }

using enum CallForm;
constexpr Binding kBindings[] = {
    {"math_@min_double", Identity, kUnary},
    {"math_@min_int", Identity, kUnary},
    {"math_@min_uint", Identity, kUnary},
    {"math_@min_double_double", MinPair, kBinary},
    {"math_@min_int_int", MinPair, kBinary},
    {"math_@min_uint_uint", MinPair, kBinary},
    {"math_@min_int_uint", MinPair, kBinary},
    {"math_@min_int_double", MinPair, kBinary},
    {"math_@min_double_int", MinPair, kBinary},
    {"math_@min_double_uint", MinPair, kBinary},
    {"math_@min_uint_int", MinPair, kBinary},
    {"math_@min_uint_double", MinPair, kBinary},
    {"math_@min_list_double", MinList, kUnary},
    {"math_@min_list_int", MinList, kUnary},
    {"math_@min_list_uint", MinList, kUnary},
    {"math_@max_double", Identity, kUnary},
    {"math_@max_int", Identity, kUnary},
    {"math_@max_uint", Identity, kUnary},
    {"math_@max_double_double", MaxPair, kBinary},
    {"math_@max_int_int", MaxPair, kBinary},
    {"math_@max_uint_uint", MaxPair, kBinary},
    {"math_@max_int_uint", MaxPair, kBinary},
    {"math_@max_int_double", MaxPair, kBinary},
    {"math_@max_double_int", MaxPair, kBinary},
    {"math_@max_double_uint", MaxPair, kBinary},
    {"math_@max_uint_int", MaxPair, kBinary},
    {"math_@max_uint_double", MaxPair, kBinary},
    {"math_@max_list_double", MaxList, kUnary},
    {"math_@max_list_int", MaxList, kUnary},
    {"math_@max_list_uint", MaxList, kUnary},
    {"math_ceil_double", Ceil, kUnary},
    {"math_floor_double", Floor, kUnary},
    {"math_round_double", Round, kUnary},
    {"math_trunc_double", Trunc, kUnary},
    {"math_isInf_double", IsInf, kUnary},
    {"math_isNaN_double", IsNaN, kUnary},
    {"math_isFinite_double", IsFinite, kUnary},
    {"math_abs_double", AbsDouble, kUnary},
    {"math_abs_int", AbsInt, kUnary},
    {"math_abs_uint", Identity, kUnary},
    {"math_sign_double", Sign, kUnary},
    {"math_sign_int", Sign, kUnary},
    {"math_sign_uint", Sign, kUnary},
    {"math_bitAnd_int_int", BitAnd, kBinary},
    {"math_bitAnd_uint_uint", BitAnd, kBinary},
    {"math_bitOr_int_int", BitOr, kBinary},
    {"math_bitOr_uint_uint", BitOr, kBinary},
    {"math_bitXor_int_int", BitXor, kBinary},
    {"math_bitXor_uint_uint", BitXor, kBinary},
    {"math_bitNot_int_int", BitNot, kUnary},
    {"math_bitNot_uint_uint", BitNot, kUnary},
    {"math_bitShiftLeft_int_int", ShiftLeft, kBinary},
    {"math_bitShiftLeft_uint_int", ShiftLeft, kBinary},
    {"math_bitShiftRight_int_int", ShiftRight, kBinary},
    {"math_bitShiftRight_uint_int", ShiftRight, kBinary},
    {"math_sqrt_double", Sqrt, kUnary},
    {"math_sqrt_int", Sqrt, kUnary},
    {"math_sqrt_uint", Sqrt, kUnary},
};

}  // namespace

std::span<const Binding> MathBindings() { return kBindings; }

}  // namespace keelson::cel
