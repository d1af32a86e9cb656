// Statistics over time of one number that changes in steps: time-weighted average and deviation, minimum, maximum.
// Thread safety: none; the owner of the number guards it.
#pragma once

#include "base/clock.h"

namespace keelson::flowcontrol {

class Integrator {
 public:
  struct Results {
    double duration = 0;   // seconds
    double average = 0;    // not a number where no time passed
    double deviation = 0;  // not a number where rounding made the variance negative
    double min = 0;
    double max = 0;
  };

  explicit Integrator(base::Clock::SteadyTime now) : last_(now) {}

  void Set(base::Clock::SteadyTime now, double value);
  Results Get(base::Clock::SteadyTime now);
  // The results so far; a new period begins with the present value.
  Results Reset(base::Clock::SteadyTime now);

 private:
  void Advance(base::Clock::SteadyTime now);

  base::Clock::SteadyTime last_;
  double value_ = 0;
  double elapsed_ = 0;             // integral of dt, seconds
  double integral_ = 0;            // of value dt
  double integral_of_square_ = 0;  // of value * value dt
  double min_ = 0;
  double max_ = 0;
};

}  // namespace keelson::flowcontrol
