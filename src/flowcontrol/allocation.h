// Divides the server's seats among priority levels: bounded water filling.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/outcome.h"

namespace keelson::flowcontrol {

struct AllocationClass {
  double target = 0;
  double lower_bound = 0;
  double upper_bound = 0;
};

struct Allocation {
  std::vector<double> seats;  // one for each class; they add up to the required sum
  double fair_fraction = 0;   // seats = clamp(fair_fraction * target) to the class's bounds
};

// The error is upstream's text for an unsolvable problem.
Outcome<Allocation, std::string> ComputeConcurrencyAllocation(int required_sum,
                                                              std::span<const AllocationClass> classes);

}  // namespace keelson::flowcontrol
