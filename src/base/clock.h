// Time as something that is passed in, so that tests own it.
#pragma once

#include <chrono>

namespace keelson::base {

class Clock {
 public:
  using SystemTime = std::chrono::system_clock::time_point;
  using SteadyTime = std::chrono::steady_clock::time_point;

  virtual ~Clock() = default;
  virtual SystemTime Now() const = 0;        // what is written into objects
  virtual SteadyTime Monotonic() const = 0;  // what durations and deadlines are measured with

  static const Clock& Real();
};

}  // namespace keelson::base
