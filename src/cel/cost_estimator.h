// Static cost of a checked expression: cel-go's checker/cost.go with the estimates that apiserver's
// library.CostEstimator adds, to the unit. Sizes of variables come from the caller.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "cel/ast.h"
#include "cel/environment.h"

namespace keelson::cel {

inline constexpr std::uint64_t kCostMax = std::numeric_limits<std::uint64_t>::max();

// A range of sizes or costs. Arithmetic saturates at 2^64-1.
struct Estimate {
  std::uint64_t min = 0;
  std::uint64_t max = 0;

  static Estimate Fixed(std::uint64_t value) { return {value, value}; }
  static Estimate Unknown() { return {0, kCostMax}; }
  Estimate Add(Estimate other) const;
  Estimate Multiply(Estimate other) const;
  Estimate Scale(double factor) const;  // rounded up
  Estimate Union(Estimate other) const;
  friend bool operator==(Estimate, Estimate) = default;
};

class SizeEstimator {
 public:
  virtual ~SizeEstimator() = default;
  // Size of the value at `path` ("self", "list", "@items"; "@keys", "@values", "@indices"), which has `type`; nothing
  // where it is not known. An empty path: by type alone.
  virtual std::optional<Estimate> EstimateSize(std::span<const std::string_view> path, const Type& type) const = 0;
};

struct CostOptions {
  const SizeEstimator* sizes = nullptr;
  std::uint64_t presence_test_cost = 0;  // Kubernetes: has() costs nothing beside its operand
};

// REQUIRES: ast.checked(). Constants, macros and libraries are those of the environment it was compiled with.
Estimate EstimateCost(const Ast& ast, const CostOptions& options);

}  // namespace keelson::cel
