// List functions: Kubernetes' own (isSorted, sum, min, max, indexOf), the sets library and ext.Lists version 3.
#include <algorithm>
#include <vector>

#include "cel/functions.h"
#include "cel/operators.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;
using Args = std::span<const Val>;

bool IsComparer(const Val& value) { return (TraitsOf(value) & kComparer) != 0; }

Val IsSorted(Evaluation& e, Args args) {
  const List& list = args[0].list();
  Val previous;
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val next = list.Get(e.arena, i);
    if (!IsComparer(next)) return NoSuchOverload(next);
    if (i > 0) {
      const Val order = Compare(previous, next);
      if (order.is(Tag::kInt) && order.int_value() == 1) return Val::Bool(false);
    }
    previous = next;
  }
  return Val::Bool(true);
}

Val SumFrom(Evaluation& e, const List& list, Val sum) {
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val next = list.Get(e.arena, i);
    if ((TraitsOf(next) & kAdder) == 0) return NoSuchOverload(next);
    sum = Add(e.arena, sum, next);
    if (sum.is_error()) return sum;
  }
  return sum;
}

Val SumInt(Evaluation& e, Args args) { return SumFrom(e, args[0].list(), Val::Int(0)); }
Val SumUint(Evaluation& e, Args args) { return SumFrom(e, args[0].list(), Val::Uint(0)); }
Val SumDouble(Evaluation& e, Args args) { return SumFrom(e, args[0].list(), Val::Double(0)); }
Val SumDuration(Evaluation& e, Args args) { return SumFrom(e, args[0].list(), Val::Duration(0)); }

// `replaces`: the order of the best so far to an item that makes the item the new best.
Val Extreme(Evaluation& e, const List& list, std::int64_t replaces, std::string_view name) {
  Val best;
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val next = list.Get(e.arena, i);
    if (!IsComparer(next)) return NoSuchOverload(next);
    if (i == 0) {
      best = next;
      continue;
    }
    const Val order = Compare(best, next);
    if (order.is(Tag::kInt) && order.int_value() == replaces) best = next;
  }
  return list.size == 0 ? ErrorIn(e.arena, name, " called on empty list") : best;
}

Val Min(Evaluation& e, Args args) { return Extreme(e, args[0].list(), 1, "min"); }
Val Max(Evaluation& e, Args args) { return Extreme(e, args[0].list(), -1, "max"); }

Val IndexOf(Evaluation& e, Args args) {
  const List& list = args[0].list();
  for (std::uint32_t i = 0; i < list.size; ++i) {
    if (EqualMethod(e.arena, list.Get(e.arena, i), args[1]).is_true()) return Val::Int(i);
  }
  return Val::Int(-1);
}

Val LastIndexOf(Evaluation& e, Args args) {
  const List& list = args[0].list();
  for (std::uint32_t i = list.size; i-- > 0;) {
    if (EqualMethod(e.arena, list.Get(e.arena, i), args[1]).is_true()) return Val::Int(i);
  }
  return Val::Int(-1);
}

Val SetsContainsAll(Evaluation& e, const Val& list, const List& sub) {
  for (std::uint32_t i = 0; i < sub.size; ++i) {
    const Val found = Contains(e.arena, list, sub.Get(e.arena, i));
    if (!found.is_true()) return found;
  }
  return Val::Bool(true);
}

Val SetsContains(Evaluation& e, Args args) { return SetsContainsAll(e, args[0], args[1].list()); }
Val SetsEquivalent(Evaluation& e, Args args) {
  const Val contains = SetsContainsAll(e, args[0], args[1].list());
  return contains.is_true() ? SetsContainsAll(e, args[1], args[0].list()) : contains;
}
Val SetsIntersects(Evaluation& e, Args args) {
  const List& list = args[0].list();
  for (std::uint32_t i = 0; i < list.size; ++i) {
    if (Contains(e.arena, args[1], list.Get(e.arena, i)).is_true()) return Val::Bool(true);
  }
  return Val::Bool(false);
}

Val Slice(Evaluation& e, Args args) {
  const List& list = args[0].list();
  const std::int64_t start = args[1].int_value(), end = args[2].int_value();
  const std::string call = "cannot slice(" + std::to_string(start) + ", " + std::to_string(end) + "), ";
  if (start < 0 || end < 0) return e.Error(call + "negative indexes not supported");
  if (start > end) return e.Error(call + "start index must be less than or equal to end index");
  if (list.size < end) return e.Error(call + "list is length " + std::to_string(list.size));
  List* out = NewList(e.arena, static_cast<std::uint32_t>(end - start));
  for (auto i = static_cast<std::uint32_t>(start); i < end; ++i) out->items[out->size++] = list.Get(e.arena, i);
  return Val::Of(out);
}

void FlattenInto(Evaluation& e, const List& list, std::int64_t depth, List& out) {
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val item = list.Get(e.arena, i);
    if (!item.is_list() || depth == 0) {
      Append(e.arena, out, item);
    } else {
      FlattenInto(e, item.list(), depth - 1, out);
    }
  }
}

Val Flatten(Evaluation& e, Args args) {
  if (!args[0].is_list()) {
    std::string text = "no such overload: " + std::string(TypeNameOf(args[0])) + ".flatten(";
    if (args.size() > 1) text += TypeNameOf(args[1]);
    return e.Error(text + ")");
  }
  if (args.size() > 1 && !args[1].is(Tag::kInt))
    return e.Error("no such overload: list(dyn).flatten(" + std::string(TypeNameOf(args[1])) + ")");
  const std::int64_t depth = args.size() > 1 ? args[1].int_value() : 1;
  if (depth < 0) return Val::Error("level must be non-negative");
  List* out = NewList(e.arena, args[0].list().size);
  FlattenInto(e, args[0].list(), depth, *out);
  return Val::Of(out);
}

Val SortByKeys(Evaluation& e, const Val& values, const Val& keys_value) {
  const List& list = values.list();
  const List& keys = keys_value.list();
  if (list.size != keys.size)
    return e.Error("@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got " +
                   std::to_string(list.size) + " and " + std::to_string(keys.size) + " elements respectively");
  if (list.size == 0) return values;
  std::vector<std::pair<Val, std::uint32_t>> order(list.size);
  for (std::uint32_t i = 0; i < list.size; ++i) order[i] = {keys.Get(e.arena, i), i};
  if (!IsComparer(order[0].first)) return Val::Error("list elements must be comparable");
  for (const auto& [key, index] : order) {
    if (key.tag() != order[0].first.tag() && list.size > 1) return Val::Error("list elements must have the same type");
  }
  // NaN is less than nothing: the comparison stays a strict order of what can be ordered, as far as sort needs it.
  const auto less = [](const auto& a, const auto& b) {
    const Val compared = Compare(a.first, b.first);
    if (compared.is(Tag::kInt) && compared.int_value() != 0) return compared.int_value() < 0;
    return a.second < b.second;
  };
  const bool ordered = std::ranges::none_of(order, [](const auto& pair) {
    return pair.first.is(Tag::kDouble) && pair.first.double_value() != pair.first.double_value();
  });
  if (ordered) std::ranges::sort(order, less);
  List* out = NewList(e.arena, list.size);
  for (const auto& [key, index] : order) out->items[out->size++] = list.Get(e.arena, index);
  return Val::Of(out);
}

Val Sort(Evaluation& e, Args args) { return SortByKeys(e, args[0], args[0]); }
Val SortByAssociatedKeys(Evaluation& e, Args args) {
  if (!args[1].is_list())
    return e.Internal("interface conversion: " + std::string(GoTypeOf(args[1])) + " is not traits.Lister");
  return SortByKeys(e, args[0], args[1]);
}

Val Range(Evaluation& e, Args args) {
  const std::int64_t count = std::max<std::int64_t>(0, args[0].int_value());
  // The reference allocates first and charges afterwards; a list that the limit forbids is never made here.
  if (static_cast<std::uint64_t>(count) > e.remaining_cost() || count > UINT32_MAX)
    return e.ExceedCost(static_cast<std::uint64_t>(count) + 11);
  List* out = NewList(e.arena, static_cast<std::uint32_t>(count));
  for (std::int64_t i = 0; i < count; ++i) out->items[out->size++] = Val::Int(i);
  return Val::Of(out);
}

Val Reverse(Evaluation& e, Args args) {
  const List& list = args[0].list();
  List* out = NewList(e.arena, list.size);
  for (std::uint32_t i = list.size; i-- > 0;) out->items[out->size++] = list.Get(e.arena, i);
  return Val::Of(out);
}

Val Distinct(Evaluation& e, Args args) {
  const List& list = args[0].list();
  if (list.size == 0) return args[0];
  List* out = NewList(e.arena, list.size);
  for (std::uint32_t i = 0; i < list.size; ++i) {
    const Val item = list.Get(e.arena, i);
    const auto same = [&](const Val& other) { return EqualMethod(e.arena, item, other).is_true(); };
    if (std::none_of(out->items, out->items + out->size, same)) out->items[out->size++] = item;
  }
  return Val::Of(out);
}

using enum CallForm;
constexpr Binding kBindings[] = {
    {"list_int_is_sorted_bool", IsSorted, kUnary},
    {"list_uint_is_sorted_bool", IsSorted, kUnary},
    {"list_double_is_sorted_bool", IsSorted, kUnary},
    {"list_bool_is_sorted_bool", IsSorted, kUnary},
    {"list_duration_is_sorted_bool", IsSorted, kUnary},
    {"list_timestamp_is_sorted_bool", IsSorted, kUnary},
    {"list_string_is_sorted_bool", IsSorted, kUnary},
    {"list_bytes_is_sorted_bool", IsSorted, kUnary},
    {"list_int_sum_int", SumInt, kUnary},
    {"list_uint_sum_uint", SumUint, kUnary},
    {"list_double_sum_double", SumDouble, kUnary},
    {"list_duration_sum_duration", SumDuration, kUnary},
    {"list_int_max_int", Max, kUnary},
    {"list_uint_max_uint", Max, kUnary},
    {"list_double_max_double", Max, kUnary},
    {"list_bool_max_bool", Max, kUnary},
    {"list_duration_max_duration", Max, kUnary},
    {"list_timestamp_max_timestamp", Max, kUnary},
    {"list_string_max_string", Max, kUnary},
    {"list_bytes_max_bytes", Max, kUnary},
    {"list_int_min_int", Min, kUnary},
    {"list_uint_min_uint", Min, kUnary},
    {"list_double_min_double", Min, kUnary},
    {"list_bool_min_bool", Min, kUnary},
    {"list_duration_min_duration", Min, kUnary},
    {"list_timestamp_min_timestamp", Min, kUnary},
    {"list_string_min_string", Min, kUnary},
    {"list_bytes_min_bytes", Min, kUnary},
    {"list_a_index_of_int", IndexOf, kBinary},
    {"list_a_last_index_of_int", LastIndexOf, kBinary},
    {"list_sets_contains_list", SetsContains, kBinary},
    {"list_sets_equivalent_list", SetsEquivalent, kBinary},
    {"list_sets_intersects_list", SetsIntersects, kBinary},
    {"list_slice", Slice, kVarArgs},
    {"list_flatten", Flatten, kUnary},
    {"list_flatten_int", Flatten, kBinary},
    {"lists_range", Range, kUnary},
    {"list_reverse", Reverse, kUnary},
    {"list_distinct", Distinct, kUnary},
};

constexpr Singleton kSingletons[] = {
    {"sort", Sort, kUnary, kLister},
    {"@sortByAssociatedKeys", SortByAssociatedKeys, kBinary, kLister},
};

}  // namespace

std::span<const Binding> ListBindings() { return kBindings; }
std::span<const Singleton> ListSingletons() { return kSingletons; }

}  // namespace keelson::cel
