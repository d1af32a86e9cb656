#include "flowcontrol/timing_ratio.h"

#include <algorithm>
#include <chrono>

namespace keelson::flowcontrol {
namespace {

constexpr int kNumeratorBits = 16;
constexpr std::uint64_t kTimeMask = ~std::uint64_t{0} >> kNumeratorBits;

}  // namespace

std::uint64_t TimingRatio::Pack(base::Clock::SteadyTime now, std::uint64_t numerator) {
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
  return static_cast<std::uint64_t>(micros) << kNumeratorBits | numerator;
}

void TimingRatio::Set(base::Clock::SteadyTime now, std::int64_t numerator) {
  const auto bounded = std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(numerator, 0)), kNumeratorMax);
  const std::uint64_t next = Pack(now, bounded);
  const std::uint64_t last = state_.exchange(next, std::memory_order_relaxed);
  const std::uint64_t passed = ((next >> kNumeratorBits) - (last >> kNumeratorBits)) & kTimeMask;
  // Two threads may exchange in the other order than they read the clock: nothing is counted then.
  if (passed == 0 || passed > kTimeMask / 2) return;
  const double ratio =
      static_cast<double>(last & kNumeratorMax) / static_cast<double>(denominator_.load(std::memory_order_relaxed));
  histogram_.Observe(ratio, passed * 1000);
}

void TimingRatio::SetDenominator(base::Clock::SteadyTime now, std::int64_t denominator) {
  Flush(now);
  denominator_.store(std::max<std::int64_t>(denominator, 1), std::memory_order_relaxed);
}

void TimingRatio::Flush(base::Clock::SteadyTime now) {
  Set(now, static_cast<std::int64_t>(state_.load(std::memory_order_relaxed) & kNumeratorMax));
}

void GuardedTimingRatio::CountUntil(base::Clock::SteadyTime now) {
  if (now <= last_) return;
  const auto passed =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now - last_).count());
  last_ = now;
  const auto index = static_cast<std::size_t>(std::max<std::int64_t>(numerator_, 0));
  if (index < kSums) {
    nanoseconds_[index] += passed;
  } else {
    histogram_.Observe(static_cast<double>(numerator_) / static_cast<double>(denominator_), passed);
  }
}

void GuardedTimingRatio::Flush(base::Clock::SteadyTime now) {
  CountUntil(now);
  for (std::size_t i = 0; i < kSums; ++i) {
    if (nanoseconds_[i] == 0) continue;
    histogram_.Observe(static_cast<double>(i) / static_cast<double>(denominator_), nanoseconds_[i]);
    nanoseconds_[i] = 0;
  }
}

void GuardedTimingRatio::SetDenominator(base::Clock::SteadyTime now, std::int64_t denominator) {
  Flush(now);
  denominator_ = std::max<std::int64_t>(denominator, 1);
}

}  // namespace keelson::flowcontrol
