// Timestamps and durations of CEL: texts as Go writes them, calendar fields in a time zone, checked arithmetic.
// Pure; named zones come from the TimeZones of the caller.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "cel/value.h"

namespace keelson::cel {

// One zone of the tz database, read from a TZif file (RFC 8536). Immutable.
class TimeZone {
 public:
  static std::optional<TimeZone> Parse(std::string_view tzif);
  std::int32_t OffsetAt(std::int64_t unix_seconds) const;  // seconds east of UTC

 private:
  struct Rule {     // of the footer's POSIX TZ text
    char kind = 0;  // 'M', 'J', 'D' (zero-based day); 0: none
    int month = 0, week = 0, day = 0;
    std::int32_t time = 7200;
  };
  bool ParseFooter(std::string_view footer);
  std::int64_t RuleSeconds(const Rule& rule, std::int64_t year) const;  // since the year began, local time
  std::vector<std::int64_t> transitions_;
  std::vector<std::int32_t> offsets_;  // after each transition
  std::int32_t first_offset_ = 0;
  bool has_footer_ = false;
  std::int32_t standard_offset_ = 0, daylight_offset_ = 0;
  Rule begin_, end_;
};

// The tz database. Implementations read files and cache; Find is called while expressions are evaluated.
class TimeZones {
 public:
  virtual ~TimeZones() = default;
  virtual const TimeZone* Find(std::string_view name) const = 0;  // nullptr: unknown; lives as long as this
};

enum class TimeField : std::uint8_t {
  kFullYear,
  kMonth,
  kDayOfYear,
  kDayOfMonth,
  kDate,
  kDayOfWeek,
  kHours,
  kMinutes,
  kSeconds,
  kMilliseconds,
};

Val TimestampField(Arena& arena, const Val& timestamp, TimeField field, std::string_view zone, const TimeZones* zones);
Val DurationField(const Val& duration, TimeField field);

inline constexpr std::int64_t kMinUnixTime = -62135596800;
inline constexpr std::int64_t kMaxUnixTime = 253402300799;

Val AddTimestampDuration(const Val& timestamp, std::int64_t nanoseconds);
Val SubtractTimestamps(const Val& a, const Val& b);

std::string DurationText(std::int64_t nanoseconds);    // string(duration): "1.5s"
std::string GoDurationText(std::int64_t nanoseconds);  // %v: "1.5s", "2m0s"
std::string TimestampText(const Val& timestamp);       // RFC 3339 with nanoseconds, in the zone it was written in
std::string GoTimeText(const Val& timestamp);          // %v: "2024-02-29 12:00:00 +0000 UTC"
std::optional<Val> ParseTimestamp(std::string_view text);

// Texts of schema formats as kube-openapi's strfmt reads them.
Outcome<std::int64_t, std::string> ParseFormatDuration(std::string_view text);
Outcome<Val, std::string> ParseFormatDate(std::string_view text);
Outcome<Val, std::string> ParseFormatDateTime(std::string_view text);

}  // namespace keelson::cel
