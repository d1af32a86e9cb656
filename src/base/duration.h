// Durations as Go writes and reads them: "1m0s", "300ms", "1.5h".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace keelson::base {

std::string FormatDuration(std::chrono::nanoseconds duration);  // time.Duration.String(): "0s", "1h2m0.5s", "1.5µs"

// time.ParseDuration: a sign, then numbers with units ns, us, µs, μs, ms, s, m, h; "0" alone needs no unit. Nothing
// when the text is malformed or does not fit 64 bits of nanoseconds; then `error`, where given, says why in Go's words:
// time: unknown unit "d" in duration "5d".
std::optional<std::chrono::nanoseconds> ParseDuration(std::string_view text, std::string* error = nullptr);

}  // namespace keelson::base
