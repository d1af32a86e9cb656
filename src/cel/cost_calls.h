// Static costs of the calls that cel-go leaves to its libraries and to apiserver's library.CostEstimator.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "cel/cost_estimator.h"

namespace keelson::cel {

inline constexpr double kStringTraversalFactor = 0.1;
inline constexpr double kRegexLengthFactor = 0.25;

// A receiver or argument of a call.
struct CallNode {
  std::span<const std::string_view> path;
  const Type* type = nullptr;
  const Expr* expr = nullptr;
  std::optional<Estimate> size;
};

struct CallEstimate {
  Estimate cost;
  std::optional<Estimate> result_size;
};

// Nothing if the call has no specific cost here. The costs of the arguments are not included.
std::optional<CallEstimate> EstimateLibraryCall(std::string_view function, std::string_view overload,
                                                const CallNode* target, std::span<const CallNode> args,
                                                const SizeEstimator* sizes);

}  // namespace keelson::cel
