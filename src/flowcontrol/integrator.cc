#include "flowcontrol/integrator.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace keelson::flowcontrol {

void Integrator::Advance(base::Clock::SteadyTime now) {
  // Go's Duration.Seconds(): whole seconds and the fraction are converted apart.
  const auto passed = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count();
  const double dt = static_cast<double>(passed / 1'000'000'000) + static_cast<double>(passed % 1'000'000'000) / 1e9;
  last_ = now;
  elapsed_ += dt;
  integral_ += value_ * dt;
  integral_of_square_ += value_ * value_ * dt;
}

void Integrator::Set(base::Clock::SteadyTime now, double value) {
  Advance(now);
  value_ = value;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

Integrator::Results Integrator::Get(base::Clock::SteadyTime now) {
  Advance(now);
  Results results{.duration = elapsed_, .min = min_, .max = max_};
  results.average = results.deviation = std::numeric_limits<double>::quiet_NaN();
  if (elapsed_ <= 0) return results;
  results.average = integral_ / elapsed_;
  const double variance = integral_of_square_ / elapsed_ - results.average * results.average;
  if (variance >= 0) results.deviation = std::sqrt(variance);
  return results;
}

Integrator::Results Integrator::Reset(base::Clock::SteadyTime now) {
  const Results results = Get(now);
  elapsed_ = integral_ = integral_of_square_ = 0;
  min_ = max_ = value_;
  return results;
}

}  // namespace keelson::flowcontrol
