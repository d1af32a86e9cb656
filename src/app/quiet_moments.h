// When memory that is free or can be read again is given back: once after the start and after work, in the first quiet
// moment. Controllers look at every object after a start, so the start ends later than the server is ready.
#pragma once

#include <chrono>

namespace keelson::app {

// Told the CPU time of the process once per kEvery. Thread safety: none.
class QuietMoments {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr std::chrono::milliseconds kEvery{500};
  static constexpr Duration kQuiet = std::chrono::milliseconds(10);  // a moment with less is quiet
  static constexpr Duration kWork =
      std::chrono::milliseconds(50);  // less than this since the last time is not worth it

  explicit QuietMoments(Duration cpu) : last_(cpu) {}

  // True when memory is to be given back now.
  bool Look(Duration cpu) {
    const Duration spent = cpu - last_;
    last_ = cpu;
    if (spent >= kQuiet) {
      worked_ += spent;
      return false;
    }
    if (worked_ < kWork) return false;
    worked_ = Duration::zero();
    return true;
  }

 private:
  Duration last_;
  Duration worked_ = kWork;  // of the start
};

}  // namespace keelson::app
