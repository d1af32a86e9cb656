#include "base/clock.h"

namespace keelson::base {
namespace {
class RealClock final : public Clock {
 public:
  SystemTime Now() const override { return std::chrono::system_clock::now(); }
  SteadyTime Monotonic() const override { return std::chrono::steady_clock::now(); }
};
}  // namespace

const Clock& Clock::Real() {
  static const RealClock clock;
  return clock;
}
}  // namespace keelson::base
