// Concurrency limits of priority levels: nominal shares, and what levels lend each other by their recent demand.
#pragma once

#include <optional>
#include <span>

#include "flowcontrol/integrator.h"
#include "flowcontrol/priority_level.h"

namespace keelson::flowcontrol {

// Smoothed seat demand of one level over adjustment periods.
struct DemandStats {
  static constexpr double kSmoothing = 0.977;

  double average = 0;
  double deviation = 0;
  int high_watermark = 0;
  double smoothed = 0;

  void Update(const Integrator::Results& period);
};

struct LevelLimits {
  int nominal = 0;
  int min = 0;
  int max = 0;
  std::optional<int> max_seats;  // for one request; none for levels without queues
};

// `share_sum` is the sum of the shares of all levels, the exempt one included.
LevelLimits ComputeLimits(const PriorityLevelSpec& spec, int server_limit, double share_sum);

struct BorrowingLevel {
  bool exempt = false;
  LevelLimits limits;
  DemandStats demand;
  int current = 0;    // out: the present limit, in: the last one
  double target = 0;  // out
};

// Sets the present limit of each level so that they add up to the sum of the nominal ones. Returns the fair fraction
// (0 where demand plays no part).
double AdjustBorrowing(std::span<BorrowingLevel> levels);

}  // namespace keelson::flowcontrol
