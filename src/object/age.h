// How long ago something was, as kubectl get shows it: the one thing in a table's row that changes while the object
// does not. A row made with an AgeTemplate for its clock has marks where ages go, so that it can be kept with the
// object and be given its ages whenever it is sent. Thread safety: functions of their arguments.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "object/time.h"

namespace keelson::object {

// "5d3h", as apimachinery's duration.HumanDuration.
std::string HumanDuration(std::chrono::nanoseconds duration);

// The age of something that happened at `time`; with an AgeTemplate, its mark.
std::string Age(const base::Clock& clock, Time time);

class AgeTemplate final : public base::Clock {
 public:
  explicit AgeTemplate(const base::Clock& clock) : clock_(clock) {}
  // The time as it is, and not as a mark: what is made with it must not be kept.
  SystemTime Now() const override;
  SteadyTime Monotonic() const override;
  bool read() const { return read_; }

  // Appends `text` with every mark replaced by its age, escaped for a JSON string.
  static void Fill(std::string_view text, const base::Clock& clock, std::string& out);

 private:
  const base::Clock& clock_;
  mutable bool read_ = false;
};

}  // namespace keelson::object
