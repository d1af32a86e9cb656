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

}  // namespace keelson::flowcontrol
