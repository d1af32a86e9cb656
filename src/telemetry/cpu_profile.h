// Sampling CPU profiler: the stack of the running thread is recorded a hundred times for each second of CPU time, and
// written in the format of pprof (profile.proto, not compressed). Addresses are not resolved to names
// here; pprof does that with the binary. Thread safety: all members from any thread; one profile at a time.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace keelson::telemetry {

class CPUProfile {
 public:
  static constexpr int kSamplesPerSecond = 100;
  static constexpr std::size_t kSamplesMax = 16 * 1024;  // later ones are dropped
  static constexpr int kFramesMax = 48;                  // deeper ones are cut off

  // Begins to sample; empty when a profile is under way already.
  static std::optional<CPUProfile> Start();
  CPUProfile(CPUProfile&& other) noexcept;
  CPUProfile& operator=(CPUProfile&&) = delete;
  ~CPUProfile();  // ends it
  // Ends it and gives what was seen.
  std::string Finish();

 private:
  explicit CPUProfile(base::Clock::SystemTime started) : started_(started), active_(true) {}
  void Stop();
  base::Clock::SystemTime started_;
  bool active_;
};

}  // namespace keelson::telemetry
