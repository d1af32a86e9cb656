// Go's conversion of a floating-point number to an integer. C++ leaves it undefined where the number does not fit.
#pragma once

#include <cstdint>
#include <limits>

namespace keelson::base {

// int64(value) on amd64: toward zero; what does not fit, and NaN, is the smallest number.
inline std::int64_t GoInt64(double value) {
  const bool fits = value >= -0x1p63 && value < 0x1p63;
  return fits ? static_cast<std::int64_t>(value) : std::numeric_limits<std::int64_t>::min();
}

}  // namespace keelson::base
