// Time-weighted histogram of a ratio: as if it were observed once a nanosecond. Upstream's
// TimingRatioHistogram; here time is counted by the microsecond.
// Thread safety: all members from any thread, without a lock. A change is one atomic exchange, which decides who counts
// the time since the change before it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "telemetry/metrics.h"

namespace keelson::flowcontrol {

class TimingRatio {
 public:
  static constexpr std::uint64_t kNumeratorMax = 0xFFFF;  // larger numerators count as this

  TimingRatio(telemetry::Histogram& histogram, base::Clock::SteadyTime now)
      : histogram_(histogram), state_(Pack(now, 0)) {}

  void Set(base::Clock::SteadyTime now, std::int64_t numerator);
  void SetDenominator(base::Clock::SteadyTime now, std::int64_t denominator);  // at least 1; 1 at first
  // Counts the time until now.
  void Flush(base::Clock::SteadyTime now);

 private:
  static std::uint64_t Pack(base::Clock::SteadyTime now, std::uint64_t numerator);

  telemetry::Histogram& histogram_;
  std::atomic<std::uint64_t> state_;  // microseconds of the last change above, numerator in the low 16 bits
  std::atomic<std::int64_t> denominator_{1};
};

// The same for a number that a mutex guards already: times are summed up by numerator and told to the histogram by
// Flush(). Thread safety: none.
class GuardedTimingRatio {
 public:
  GuardedTimingRatio(telemetry::Histogram& histogram, base::Clock::SteadyTime now)
      : histogram_(histogram), last_(now) {}

  void Set(base::Clock::SteadyTime now, std::int64_t numerator) {
    if (numerator == numerator_) return;
    CountUntil(now);
    numerator_ = numerator;
  }
  void SetDenominator(base::Clock::SteadyTime now, std::int64_t denominator);  // at least 1; 1 at first
  // Counts the time until now.
  void Flush(base::Clock::SteadyTime now);

 private:
  static constexpr std::size_t kSums = 64;  // times of larger numerators go to the histogram at once
  void CountUntil(base::Clock::SteadyTime now);

  telemetry::Histogram& histogram_;
  base::Clock::SteadyTime last_;
  std::int64_t numerator_ = 0;
  std::int64_t denominator_ = 1;
  std::array<std::uint64_t, kSums> nanoseconds_{};
};

// The same for a number of things that come and go on several threads.
class CountedTimingRatio {
 public:
  CountedTimingRatio(telemetry::Histogram& histogram, base::Clock::SteadyTime now) : ratio_(histogram, now) {}
  void Add(base::Clock::SteadyTime now, int delta) { ratio_.Set(now, count_.fetch_add(delta) + delta); }
  TimingRatio& ratio() { return ratio_; }

 private:
  std::atomic<std::int64_t> count_{0};
  TimingRatio ratio_;
};

}  // namespace keelson::flowcontrol
