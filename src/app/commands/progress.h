// How far long work is: a bar with rate and time left where stderr is a terminal, a plain line now and then where not.
// Not thread-safe: one thread calls.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace keelson::app {

enum class ProgressUnit { kBytes, kItems };

// 12.3 MB
std::string HumanBytes(std::uint64_t bytes);
// The text of a bar without the control characters around it: "copying  [=====>    ] 52%  5.2 MB of 10.0 MB, 1.0 MB/s,
// 5 s left". `total` 0: not known, so no bar, no time left.
std::string ProgressText(const std::string& title, ProgressUnit unit, std::uint64_t done, std::uint64_t total,
                         std::chrono::duration<double> took);

class Progress {
 public:
  Progress(std::string title, ProgressUnit unit, std::FILE* out = stderr);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Set(std::uint64_t done, std::uint64_t total = 0);
  void Clear();  // the bar, before something else is printed

 private:
  using Clock = std::chrono::steady_clock;
  const std::string title_;
  const ProgressUnit unit_;
  std::FILE* const out_;
  const bool terminal_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_;
  bool drawn_ = false;
};

// Adapter for functions that report progress. `progress` must outlive it.
inline auto SetterOf(Progress& progress) {
  return [&progress](auto done, auto total) {
    progress.Set(static_cast<std::uint64_t>(done), static_cast<std::uint64_t>(total));
  };
}

}  // namespace keelson::app
