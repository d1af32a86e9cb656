// Fake clock for tests: advances only by Advance(). Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.h"

namespace keelson::base {

class FakeClock final : public Clock {
 public:
  SystemTime Now() const override {
    return SystemTime(std::chrono::hours(24 * 365 * 56)) + std::chrono::nanoseconds(passed_.load());
  }
  SteadyTime Monotonic() const override {
    return SteadyTime(std::chrono::hours(1)) + std::chrono::nanoseconds(passed_.load());
  }
  void Advance(std::chrono::nanoseconds time) { passed_ += time.count(); }

 private:
  std::atomic<std::int64_t> passed_{0};
};

}  // namespace keelson::base
