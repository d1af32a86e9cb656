// Spans of time in objects, as Go writes them: "1h2m3s", "1.5s", "300ms", "0s". base/duration.h in nanoseconds, with
// errors as values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::object {

constexpr std::size_t kDurationTextMax = 40;

// As Go's time.ParseDuration; the error is Go's text.
Outcome<std::int64_t, std::string> ParseDuration(std::string_view text);
// The text's size; `out` must hold kDurationTextMax bytes.
std::size_t WriteDuration(std::int64_t nanoseconds, char* out);
std::string FormatDuration(std::int64_t nanoseconds);

}  // namespace keelson::object
