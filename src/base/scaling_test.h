// For tests that work grows no faster than its input: CPU time of a thread at two sizes, compared on a log-log scale.
// Absolute bounds would fail on slow machines and under sanitizers; the slope is the same everywhere.
#pragma once

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>

namespace keelson::base {

inline double ThreadCPUSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The least of `rounds` runs: noise only adds.
inline double CPUOf(const std::function<void()>& work, int rounds = 2) {
  double least = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double started = ThreadCPUSeconds();
    work();
    least = std::min(least, ThreadCPUSeconds() - started);
  }
  return least;
}

struct Scaling {
  double small = 0;  // seconds
  double large = 0;
  double slope = 0;  // 1: linear, 2: quadratic
};

// Steeper than n log n with caches that overflow, and long enough to be no noise.
inline bool IsSuperLinear(const Scaling& scaling) { return scaling.slope > 1.75 && scaling.large > 0.02; }

// `work(n)` prepares nothing that is not to be measured. Sizes differ by a factor of four or more. A super-linear
// result is measured a few more times: another process may have evicted the caches.
inline Scaling Measure(const std::function<void(std::size_t)>& work, std::size_t small, std::size_t large) {
  constexpr int kAttempts = 4;
  Scaling scaling{.small = 1e9, .large = 1e9};
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    scaling.small = std::min(scaling.small, CPUOf([&] { work(small); }));
    scaling.large = std::min(scaling.large, CPUOf([&] { work(large); }));
    scaling.slope = std::log(std::max(scaling.large, 1e-6) / std::max(scaling.small, 1e-6)) /
                    std::log(static_cast<double>(large) / static_cast<double>(small));
    if (!IsSuperLinear(scaling)) break;
  }
  return scaling;
}

}  // namespace keelson::base
