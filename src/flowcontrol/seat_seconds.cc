#include "flowcontrol/seat_seconds.h"

#include <fmt/format.h>

namespace keelson::flowcontrol {

std::string SeatSeconds::ToString() const {
  constexpr auto kDivisor = static_cast<std::uint64_t>(kScale);
  return fmt::format("{}.{:08}ss", units_ / kDivisor, units_ % kDivisor);
}

}  // namespace keelson::flowcontrol
