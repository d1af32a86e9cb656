#include "flowcontrol/allocation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "object/json_text.h"

namespace keelson::flowcontrol {
namespace {

constexpr double kTargetMin = 0.001;  // smaller targets count as this: nothing is divided by zero
constexpr double kEpsilon = 0.0000001;

// One class with its bounds as multiples of its target.
struct Relative {
  double target;
  double lower;
  double upper;
};

struct Range {
  double min = std::numeric_limits<float>::max();
  double max = 0;
  void Note(double x) {
    min = std::min(min, x);
    max = std::max(max, x);
  }
};

struct Problem {
  std::vector<Relative> classes;
  double low_sum = 0;
  double high_sum = 0;
  double target_sum = 0;
  Range upper_range;
  Range lower_range;
};

std::string Number(double value) { return object::GoDouble(value); }

Outcome<Problem, std::string> MakeProblem(int required_sum, std::span<const AllocationClass> classes) {
  if (required_sum < 0) return std::string("negative sums are not supported");
  Problem problem;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const AllocationClass& item = classes[i];
    if (item.lower_bound < 0) {
      return fmt::format("lower bound {} is {} but negative lower bounds are not allowed", i, Number(item.lower_bound));
    }
    if (item.target < item.lower_bound) {
      return fmt::format("target {} is {}, which is below its lower bound of {}", i, Number(item.target),
                         Number(item.lower_bound));
    }
    if (item.upper_bound < item.lower_bound) {
      return fmt::format("upper bound {} is {} but should not be less than the lower bound {}", i,
                         Number(item.upper_bound), Number(item.lower_bound));
    }
    const double target = std::max(item.target, kTargetMin);
    const Relative relative{target, item.lower_bound / target, item.upper_bound / target};
    problem.low_sum += item.lower_bound;
    problem.high_sum += item.upper_bound;
    problem.target_sum += target;
    problem.upper_range.Note(relative.upper);
    problem.lower_range.Note(relative.lower);
    problem.classes.push_back(relative);
  }
  if (problem.lower_range.max > 1) {
    return fmt::format("lbRange.max-1={}, which is impossible because lbRange.max can not be greater than 1",
                       Number(problem.lower_range.max - 1));
  }
  if (problem.low_sum - required_sum > kEpsilon) {
    return fmt::format("lower bounds sum to {}, which is higher than the required sum of {}", Number(problem.low_sum),
                       required_sum);
  }
  if (required_sum - problem.high_sum > kEpsilon) {
    return fmt::format("upper bounds sum to {}, which is lower than the required sum of {}", Number(problem.high_sum),
                       required_sum);
  }
  return problem;
}

struct Bound {
  double proportion;
  double target_change;  // of the classes that still follow the fair fraction, once it has passed this bound
};

// Raises the fair fraction from the lowest bound on, bound by bound, until the sum is reached.
Outcome<double, std::string> FillWithinBounds(const Problem& problem, double required_sum) {
  std::vector<Bound> bounds;
  for (const Relative& item : problem.classes) {
    bounds.push_back({item.lower, item.target});
    bounds.push_back({item.upper, -item.target});
  }
  std::ranges::sort(bounds, {}, &Bound::proportion);
  double sum = problem.low_sum;
  double fraction = problem.lower_range.min;
  double sensitive_targets = 0, next_targets = 0;
  int sensitive = 0, next_sensitive = 0;
  std::size_t next = 0;
  while (sum < required_sum) {
    double bound = 0;
    do {  // all bounds that are equal to the present fraction
      sensitive_targets += next_targets;
      sensitive += next_sensitive;
      if (next >= bounds.size())
        return std::string("impossible: ran out of bounds to consider in bound-constrained problem");
      bound = bounds[next].proportion;
      next_targets = bounds[next].target_change;
      next_sensitive = next_targets > 0 ? 1 : -1;
      ++next;
    } while (bound <= fraction);
    if (sensitive == 0) {
      fraction = bound;
      continue;
    }
    const double solution = fraction + (required_sum - sum) / sensitive_targets;
    if (solution <= bound) return solution;
    sum += (bound - fraction) * sensitive_targets;
    fraction = bound;
  }
  return fraction;
}

}  // namespace

Outcome<Allocation, std::string> ComputeConcurrencyAllocation(int required_sum,
                                                              std::span<const AllocationClass> classes) {
  auto made = MakeProblem(required_sum, classes);
  if (!made.ok()) return made.error();
  const Problem& problem = *made;
  Allocation allocation{.seats = std::vector<double>(classes.size())};
  if (required_sum == 0) return allocation;
  if (problem.low_sum - required_sum > -kEpsilon) {  // constrained from below
    for (std::size_t i = 0; i < classes.size(); ++i) allocation.seats[i] = classes[i].lower_bound;
    allocation.fair_fraction = problem.lower_range.min;
    return allocation;
  }
  if (required_sum - problem.high_sum > -kEpsilon) {  // constrained from above
    for (std::size_t i = 0; i < classes.size(); ++i) allocation.seats[i] = classes[i].upper_bound;
    allocation.fair_fraction = problem.upper_range.max;
    return allocation;
  }
  allocation.fair_fraction = required_sum / problem.target_sum;
  if (problem.lower_range.max <= allocation.fair_fraction && allocation.fair_fraction <= problem.upper_range.min) {
    for (std::size_t i = 0; i < classes.size(); ++i)
      allocation.seats[i] = problem.classes[i].target * allocation.fair_fraction;
    return allocation;
  }
  auto fraction = FillWithinBounds(problem, required_sum);
  if (!fraction.ok()) return fraction.error();
  allocation.fair_fraction = *fraction;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    allocation.seats[i] =
        std::max(classes[i].lower_bound, std::min(classes[i].upper_bound, *fraction * problem.classes[i].target));
  }
  return allocation;
}

}  // namespace keelson::flowcontrol
