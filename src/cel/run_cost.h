// The actual cost of a call, to the unit as cel-go's runtimecost.go with the trackers of its extension libraries and
// apiserver's library.CostEstimator.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cel/evaluation.h"
#include "cel/value.h"

namespace keelson::cel {

enum class CallCost : std::uint8_t {
  kOne,
  kAuthorizerCheck,
  kSelector,
  kTraversal,
  kText,       // ceil(0.1 size of the first argument)
  kTextTwice,  // ceil(0.2 size)
  kJoin,
  kRegex,  // matches, find, findAll
  kContainsIP,
  kContainsIPText,
  kContainsCIDR,
  kContainsCIDRText,
  kValidate,
  kInList,
  kCompare,  // string and bytes order
  kEquals,   // Kubernetes' opaque values are units
  kNotEquals,
  kConcat,
  kContains,
  kListOutput,
  kFlatten,
  kSelfCompare,  // sort, distinct
  kSortBy,
  kSets,
  kSetsTwice,
};

// `overload` is "" where more than one is possible.
CallCost CallCostOf(std::string_view function, std::string_view overload, std::size_t arg_count);
std::uint64_t CostOfCall(Evaluation& evaluation, CallCost cost, std::span<const Val> args, const Val& result);

}  // namespace keelson::cel
