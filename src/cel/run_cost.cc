#include "cel/run_cost.h"

#include <algorithm>
#include <cmath>

#include "cel/library_values.h"

namespace keelson::cel {
namespace {

using Tag = Val::Tag;

constexpr double kStringTraversal = 0.1;
constexpr double kRegexLength = 0.25;
constexpr std::uint64_t kListBase = 10;
constexpr std::uint64_t kStructBase = 40;
constexpr std::uint64_t kAuthorizerCheckCost = 350'000;

bool Among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

std::uint64_t Ceil(double value) { return static_cast<std::uint64_t>(std::ceil(value)); }

// apiserver's actualSize; cel-go's own looks into optionals as well.
std::uint64_t Size(const Val& value) { return SizeOf(value).value_or(1); }
std::uint64_t LanguageSize(const Val& value) {
  if (value.is_optional() && value.has_value()) return LanguageSize(value.optional_value());
  return Size(value);
}

std::uint64_t TextCost(std::uint64_t size) { return Ceil(static_cast<double>(size) * kStringTraversal); }

std::uint64_t RegexCost(std::uint64_t text_size, std::uint64_t pattern_size) {
  return Ceil((1.0 + static_cast<double>(text_size)) * kStringTraversal) *
         Ceil(static_cast<double>(pattern_size) * kRegexLength);
}

std::uint64_t SelectorCost(std::uint64_t size) {
  const auto requirements = Ceil(static_cast<double>(size) * 0.5);
  return kListBase + TextCost(size) + requirements * (kListBase + kStructBase);
}

std::uint64_t TraversalCost(Evaluation& e, const Val& value) {
  switch (value.tag()) {
    case Tag::kString:
    case Tag::kBytes:
      return static_cast<std::uint64_t>(static_cast<double>(value.text().size()) * kStringTraversal);
    case Tag::kList: {
      std::uint64_t cost = 0;
      for (std::uint32_t i = 0; i < value.list().size; ++i) cost += TraversalCost(e, value.list().Get(e.arena, i));
      return cost;
    }
    case Tag::kMap: {
      std::uint64_t cost = 0;
      for (std::uint32_t i = 0; i < value.map().size; ++i) {
        const auto key = value.map().KeyAt(e.arena, i);
        if (key) cost += TraversalCost(e, *key) + TraversalCost(e, value.map().ValueAt(e.arena, i));
      }
      return cost;
    }
    default:
      return 1;
  }
}

// Go's uint64(x) on amd64: negative numbers wrap, numbers that fit neither int64 nor uint64 are 2^63.
std::uint64_t GoUint64(double x) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!(x >= -kTwoTo63 && x < 2 * kTwoTo63)) return std::uint64_t{1} << 63;
  return x >= kTwoTo63 ? static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
}

std::uint64_t AllocatingListCost(double factor, std::uint64_t size) {
  return GoUint64(static_cast<double>(size) * factor) + 1 + kListBase;
}

std::uint64_t SelfCompareCost(Evaluation& e, const Val& value) {
  if (!value.is_list()) {
    e.Internal("interface conversion: " + std::string(GoTypeOf(value)) + " is not traits.Lister: missing method Add");
    return 0;
  }
  const List& list = value.list();
  if (list.size == 0) return AllocatingListCost(2, 0);
  const Val first = list.Get(e.arena, 0);
  const double factor = first.is_string() || first.is(Tag::kBytes) ? 2 + kStringTraversal : 2;
  return AllocatingListCost(factor, static_cast<std::uint64_t>(list.size) * list.size);
}

bool IsUnitEquality(const Val& value) { return value.tag() >= Tag::kQuantity; }

std::uint64_t EqualityCost(std::span<const Val> args) {
  return TextCost(std::min(LanguageSize(args[0]), LanguageSize(args[1])));
}

std::uint64_t FlattenCost(Evaluation& e, std::span<const Val> args) {
  double depth = 1;
  if (args.size() == 2) {
    if (!args[1].is(Tag::kInt)) {
      e.Internal("interface conversion: ref.Val is " + std::string(GoTypeOf(args[1])) + ", not types.Int");
      return 0;
    }
    depth = static_cast<double>(args[1].int_value());
  }
  return AllocatingListCost(depth, Size(args[0]));
}

}  // namespace

CallCost CallCostOf(std::string_view function, std::string_view overload, std::size_t arg_count) {
  // Trackers of the extension libraries go by overload.
  if (Among(overload, {"list_slice", "lists_range", "list_reverse"})) return CallCost::kListOutput;
  if (Among(overload, {"list_flatten", "list_flatten_int"})) return CallCost::kFlatten;
  if (overload == "list_distinct") return CallCost::kSelfCompare;
  if (overload.starts_with("list_") && overload.ends_with("_sort")) return CallCost::kSelfCompare;
  if (overload.starts_with("list_") && overload.ends_with("_sortByAssociatedKeys")) return CallCost::kSortBy;
  if (Among(overload, {"list_sets_contains_list", "list_sets_intersects_list"})) return CallCost::kSets;
  if (overload == "list_sets_equivalent_list") return CallCost::kSetsTwice;
  // Kubernetes' estimator goes by function.
  if (function == "check") return CallCost::kAuthorizerCheck;
  if (Among(function, {"fieldSelector", "labelSelector"}) && arg_count >= 2) return CallCost::kSelector;
  if (Among(function, {"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})) return CallCost::kTraversal;
  if (Among(function, {"url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey", "cidr", "isIP",
                       "isCIDR", "quantity", "isQuantity", "semver", "isSemver"}))
    return CallCost::kText;
  if (Among(function, {"replace", "split", "ip.isCanonical"})) return CallCost::kTextTwice;
  if (function == "join") return CallCost::kJoin;
  if (Among(function, {"find", "findAll"})) return CallCost::kRegex;
  if (function == "ip") return overload == "cidr_ip" ? CallCost::kOne : CallCost::kText;
  if (function == "containsIP")
    return overload == "cidr_contains_ip_string" ? CallCost::kContainsIPText : CallCost::kContainsIP;
  if (function == "containsCIDR")
    return overload == "cidr_contains_cidr_string" ? CallCost::kContainsCIDRText : CallCost::kContainsCIDR;
  if (function == "validate" && arg_count >= 2) return CallCost::kValidate;
  if (function == "_==_") return CallCost::kEquals;
  // The language's own functions go by overload.
  if (Among(overload, {"starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string", "strings_quote",
                       "string_format"}))
    return CallCost::kText;
  if (overload == "in_list") return CallCost::kInList;
  if (overload == "not_equals") return CallCost::kNotEquals;
  if (Among(overload, {"less_string", "greater_string", "less_equals_string", "greater_equals_string", "less_bytes",
                       "greater_bytes", "less_equals_bytes", "greater_equals_bytes"}))
    return CallCost::kCompare;
  if (Among(overload, {"add_string", "add_bytes"})) return CallCost::kConcat;
  if (overload == "matches_string") return CallCost::kRegex;
  if (overload == "contains_string") return CallCost::kContains;
  return CallCost::kOne;
}

std::uint64_t CostOfCall(Evaluation& e, CallCost cost, std::span<const Val> args, const Val& result) {
  switch (cost) {
    case CallCost::kOne:
      return 1;
    case CallCost::kAuthorizerCheck:
      return kAuthorizerCheckCost;
    case CallCost::kSelector:
      return SelectorCost(Size(args[1]));
    case CallCost::kTraversal:
      return args.empty() ? 0 : TraversalCost(e, args[0]);
    case CallCost::kText:
      return TextCost(LanguageSize(args[0]));
    case CallCost::kTextTwice:
      return Ceil(static_cast<double>(Size(args[0])) * 2 * kStringTraversal);
    case CallCost::kJoin:
      return Ceil(static_cast<double>(Size(result)) * 2 * kStringTraversal);
    case CallCost::kRegex:
      return RegexCost(LanguageSize(args[0]), LanguageSize(args[1]));
    case CallCost::kContainsIP:
    case CallCost::kContainsIPText:
    case CallCost::kContainsCIDR:
    case CallCost::kContainsCIDRText: {
      const std::uint64_t size = Size(args[0]);
      std::uint64_t sum = TextCost(size + size);
      if (cost == CallCost::kContainsCIDR || cost == CallCost::kContainsCIDRText) sum += TextCost(size) + 1;
      if (cost == CallCost::kContainsIPText || cost == CallCost::kContainsCIDRText) sum += TextCost(Size(args[1]));
      return sum;
    }
    case CallCost::kValidate:
      return args[0].is(Tag::kFormat) ? RegexCost(Size(args[1]), args[0].format().regex_size) : 1;
    case CallCost::kInList:
      return LanguageSize(args[1]);
    case CallCost::kEquals:
      return IsUnitEquality(args[0]) ? 1 : EqualityCost(args);
    case CallCost::kNotEquals:
    case CallCost::kCompare:
      return EqualityCost(args);
    case CallCost::kConcat:
      return TextCost(LanguageSize(args[0]) + LanguageSize(args[1]));
    case CallCost::kContains:
      return TextCost(LanguageSize(args[0])) * TextCost(LanguageSize(args[1]));
    case CallCost::kListOutput:
      return AllocatingListCost(1, Size(result));
    case CallCost::kFlatten:
      return FlattenCost(e, args);
    case CallCost::kSelfCompare:
      return SelfCompareCost(e, args[0]);
    case CallCost::kSortBy:
      return SelfCompareCost(e, args[1]);
    case CallCost::kSets:
    case CallCost::kSetsTwice:
      return 1 + static_cast<std::uint64_t>(static_cast<double>(Size(args[0]) * Size(args[1])) *
                                            (cost == CallCost::kSets ? 1 : 2));
  }
  return 1;
}

}  // namespace keelson::cel
