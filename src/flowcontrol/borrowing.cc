#include "flowcontrol/borrowing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "flowcontrol/allocation.h"

namespace keelson::flowcontrol {
namespace {

constexpr double kMaxSeatsFraction = 0.15;  // of a level's nominal seats, for one request

int Round(double value) { return static_cast<int>(std::round(value)); }

int MinCurrent(const BorrowingLevel& level) {
  if (level.exempt) return std::max(level.limits.min, level.demand.high_watermark);
  return std::max(level.limits.min, std::min(level.limits.nominal, level.demand.high_watermark));
}

}  // namespace

void DemandStats::Update(const Integrator::Results& period) {
  high_watermark = Round(period.max);
  if (period.duration <= 0) return;
  average = period.average;
  deviation = std::isnan(period.deviation) ? 0 : period.deviation;
  const double envelope = average + deviation;
  smoothed = std::max(envelope, kSmoothing * smoothed + (1 - kSmoothing) * envelope);
}

LevelLimits ComputeLimits(const PriorityLevelSpec& spec, int server_limit, double share_sum) {
  LevelLimits limits;
  limits.nominal = static_cast<int>(std::ceil(static_cast<double>(server_limit) * spec.nominal_shares / share_sum));
  const int lendable = Round(static_cast<double>(limits.nominal) * spec.lendable_percent / 100);
  const int borrowing = spec.borrowing_limit_percent
                            ? Round(static_cast<double>(limits.nominal) * *spec.borrowing_limit_percent / 100)
                            : server_limit;
  limits.min = limits.nominal - lendable;
  limits.max = limits.nominal + borrowing;
  if (spec.queuing.queues > 0) {
    const double fraction = std::ceil(limits.nominal * kMaxSeatsFraction);
    const double per_hand = limits.nominal / spec.queuing.hand_size;
    limits.max_seats = static_cast<int>(std::max(1.0, std::min(fraction, per_hand)));
  }
  return limits;
}

double AdjustBorrowing(std::span<BorrowingLevel> levels) {
  std::vector<AllocationClass> classes;
  std::vector<BorrowingLevel*> limited;
  int remaining = 0, nominal_sum = 0, min_sum = 0, min_current_sum = 0;
  for (const BorrowingLevel& level : levels) nominal_sum += level.limits.nominal;
  remaining = nominal_sum;
  for (BorrowingLevel& level : levels) {
    const int min_current = MinCurrent(level);
    if (level.exempt) {
      remaining -= level.current = min_current;
      continue;
    }
    level.target = std::max(static_cast<double>(min_current), level.demand.smoothed);
    classes.push_back({level.target, static_cast<double>(min_current), static_cast<double>(level.limits.max)});
    limited.push_back(&level);
    min_sum += level.limits.min;
    min_current_sum += min_current;
  }
  if (remaining <= min_sum) {
    for (BorrowingLevel* level : limited) level->current = level->limits.min;
    return 0;
  }
  if (remaining <= min_current_sum) {
    const double share = static_cast<double>(remaining - min_sum) / (min_current_sum - min_sum);
    for (BorrowingLevel* level : limited)
      level->current = level->limits.min + Round((MinCurrent(*level) - level->limits.min) * share);
    return 0;
  }
  const auto allocation = ComputeConcurrencyAllocation(nominal_sum, classes);
  if (!allocation.ok()) return 0;  // no solution: the limits stay
  for (std::size_t i = 0; i < limited.size(); ++i) limited[i]->current = Round(allocation->seats[i]);
  return allocation->fair_fraction;
}

}  // namespace keelson::flowcontrol
