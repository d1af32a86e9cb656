// Points in time as Kubernetes writes them: RFC 3339 in UTC, with seconds (metav1.Time) or microseconds
// (metav1.MicroTime).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::object {

struct Time {
  std::int64_t seconds = 0;  // since 1970
  std::int32_t nanos = 0;
  // Go's zero time, 0001-01-01T00:00:00Z: written as null.
  static constexpr std::int64_t kZeroSeconds = -62135596800;
  bool IsZero() const { return seconds == kZeroSeconds && nanos == 0; }
  friend bool operator==(const Time&, const Time&) = default;
};

constexpr std::size_t kTimeTextMax = 40;

// As Go's time.Parse with the layout of metav1.Time (or MicroTime); the error is Go's text.
Outcome<Time, std::string> ParseTime(std::string_view text, bool micro = false);
// The same for metav1.Time's layout with the zone that the text names, in minutes east of UTC.
struct ZonedTime {
  Time time;
  std::int16_t offset_minutes = 0;
};
Outcome<ZonedTime, std::string> ParseZonedTime(std::string_view text);
// The same with the layouts "2006-01-02" and "2006-01-02T15:04:05" (no zone: UTC).
Outcome<Time, std::string> ParseDate(std::string_view text);
Outcome<Time, std::string> ParseLocalTime(std::string_view text);
// The text's size; `out` must hold kTimeTextMax bytes.
std::size_t WriteTime(std::int64_t seconds, char* out);
std::size_t WriteMicroTime(Time time, char* out);
std::string FormatTime(std::int64_t seconds);
std::string FormatMicroTime(Time time);

// Days since 1970 of a civil date, and back (proleptic Gregorian).
std::int64_t DaysFromCivil(std::int64_t year, int month, int day);
struct CivilDate {
  std::int64_t year;
  int month;  // 1 to 12
  int day;    // 1 to 31
};
CivilDate CivilFromDays(std::int64_t days);

}  // namespace keelson::object
