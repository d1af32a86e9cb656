#include "cel/temporal.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/strings.h"
#include "object/duration.h"
#include "object/time.h"

namespace keelson::cel {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kDaySeconds = 86400;

struct Civil {
  std::int64_t year;
  int month, day, hour, minute, second;
  int year_day;  // from 1
  int week_day;  // Sunday is 0
};

Civil CivilOf(std::int64_t seconds) {
  std::int64_t days = seconds / kDaySeconds;
  std::int64_t rest = seconds % kDaySeconds;
  if (rest < 0) rest += kDaySeconds, --days;
  const object::CivilDate date = object::CivilFromDays(days);
  const std::int64_t first = object::DaysFromCivil(date.year, 1, 1);
  return {date.year,
          date.month,
          date.day,
          static_cast<int>(rest / 3600),
          static_cast<int>(rest / 60 % 60),
          static_cast<int>(rest % 60),
          static_cast<int>(days - first + 1),
          static_cast<int>(((days + 4) % 7 + 7) % 7)};
}

std::string DateTimeText(const Civil& civil, char separator) {
  char text[64];
  const int size =
      std::snprintf(text, sizeof text, "%04lld-%02d-%02d%c%02d:%02d:%02d", static_cast<long long>(civil.year),
                    civil.month, civil.day, separator, civil.hour, civil.minute, civil.second);
  return std::string(text, static_cast<std::size_t>(size));
}

std::string FractionText(std::int32_t nanos) {
  if (nanos == 0) return {};
  char text[16];
  std::snprintf(text, sizeof text, ".%09d", nanos);
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  return out;
}

std::string OffsetText(int minutes, std::string_view colon) {
  char text[16];
  const int size = std::snprintf(text, sizeof text, "%c%02d%.*s%02d", minutes < 0 ? '-' : '+', std::abs(minutes) / 60,
                                 static_cast<int>(colon.size()), colon.data(), std::abs(minutes) % 60);
  return std::string(text, static_cast<std::size_t>(size));
}

// strconv.Atoi with its error texts.
Outcome<std::int64_t, std::string> Atoi(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) digits.remove_prefix(1);
  const bool syntax = digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos;
  const std::string prefix = "strconv.Atoi: parsing " + base::GoQuote(text);
  if (syntax) return prefix + ": invalid syntax";
  std::string_view number = text;
  if (number[0] == '+') number.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  (void)end;
  if (error != std::errc()) return prefix + ": value out of range";
  return value;
}

// Seconds east of UTC at `seconds`, or Go's error of LoadLocation and Atoi.
Outcome<std::int64_t, std::string> ZoneOffset(std::string_view zone, std::int64_t seconds, const TimeZones* zones) {
  const std::size_t colon = zone.find(':');
  if (colon == std::string_view::npos) {
    if (zone.empty() || zone == "UTC" || zone == "Local") return std::int64_t{0};
    if (zone.find("..") != std::string_view::npos || zone[0] == '/' || zone[0] == '\\')
      return std::string("time: invalid location name");
    const TimeZone* found = zones == nullptr ? nullptr : zones->Find(zone);
    if (found == nullptr) return "unknown time zone " + std::string(zone);
    return static_cast<std::int64_t>(found->OffsetAt(seconds));
  }
  const auto hours = Atoi(zone.substr(0, colon));
  if (!hours.ok()) return hours.error();
  const auto minutes = Atoi(zone.substr(colon + 1));
  if (!minutes.ok()) return minutes.error();
  // int((time.Duration(offset) * time.Minute).Seconds()): wraps as int64 does, far outside any zone.
  const std::uint64_t offset =
      static_cast<std::uint64_t>(*hours) * 60 +
      (zone[0] == '-' ? 0 - static_cast<std::uint64_t>(*minutes) : static_cast<std::uint64_t>(*minutes));
  return static_cast<std::int64_t>(offset * 60'000'000'000ULL) / kSecond;
}

}  // namespace

Val TimestampField(Arena& arena, const Val& timestamp, TimeField field, std::string_view zone, const TimeZones* zones) {
  const auto offset = ZoneOffset(zone, timestamp.int_value(), zones);
  if (!offset.ok()) return ErrorIn(arena, offset.error());
  const Civil civil = CivilOf(timestamp.int_value() + *offset);
  switch (field) {
    case TimeField::kFullYear:
      return Val::Int(civil.year);
    case TimeField::kMonth:
      return Val::Int(civil.month - 1);
    case TimeField::kDayOfYear:
      return Val::Int(civil.year_day - 1);
    case TimeField::kDayOfMonth:
      return Val::Int(civil.day - 1);
    case TimeField::kDate:
      return Val::Int(civil.day);
    case TimeField::kDayOfWeek:
      return Val::Int(civil.week_day);
    case TimeField::kHours:
      return Val::Int(civil.hour);
    case TimeField::kMinutes:
      return Val::Int(civil.minute);
    case TimeField::kSeconds:
      return Val::Int(civil.second);
    case TimeField::kMilliseconds:
      return Val::Int(timestamp.nanos() / 1'000'000);
  }
  return NoSuchOverload();
}

Val DurationField(const Val& duration, TimeField field) {
  const std::int64_t nanos = duration.int_value();
  // Go goes through float64: d.Hours() is float64(d/Hour) + float64(d%Hour)/(60*60*1e9).
  const auto scaled = [nanos](std::int64_t unit) {
    return static_cast<std::int64_t>(static_cast<double>(nanos / unit) +
                                     static_cast<double>(nanos % unit) / static_cast<double>(unit));
  };
  switch (field) {
    case TimeField::kHours:
      return Val::Int(scaled(3600 * kSecond));
    case TimeField::kMinutes:
      return Val::Int(scaled(60 * kSecond));
    case TimeField::kSeconds:
      return Val::Int(scaled(kSecond));
    case TimeField::kMilliseconds:
      return Val::Int(nanos / 1'000'000);
    default:
      return NoSuchOverload();
  }
}

Val AddTimestampDuration(const Val& timestamp, std::int64_t nanoseconds) {
  std::int64_t seconds = timestamp.int_value() + nanoseconds / kSecond;
  std::int64_t nanos = timestamp.nanos() + nanoseconds % kSecond;
  if (nanos < 0) nanos += kSecond, --seconds;
  if (nanos >= kSecond) nanos -= kSecond, ++seconds;
  if (seconds < kMinUnixTime || seconds > kMaxUnixTime) return Val::Error("timestamp overflow");
  return Val::Timestamp(seconds, static_cast<std::int32_t>(nanos), timestamp.aux());
}

Val SubtractTimestamps(const Val& a, const Val& b) {
  const std::int64_t seconds = a.int_value() - b.int_value();  // Both are in the years 1 to 9999.
  std::int64_t nanos = 0;
  if (__builtin_mul_overflow(seconds, kSecond, &nanos) ||
      __builtin_add_overflow(nanos, static_cast<std::int64_t>(a.nanos() - b.nanos()), &nanos))
    return Val::Error("integer overflow");
  return Val::Duration(nanos);
}

std::string DurationText(std::int64_t nanoseconds) {
  const double seconds = static_cast<double>(nanoseconds / kSecond) + static_cast<double>(nanoseconds % kSecond) / 1e9;
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, seconds, std::chars_format::fixed);
  (void)error;
  return std::string(text, end) + "s";
}

std::string GoDurationText(std::int64_t nanoseconds) { return object::FormatDuration(nanoseconds); }

std::string TimestampText(const Val& timestamp) {
  const int offset = timestamp.aux();
  return DateTimeText(CivilOf(timestamp.int_value() + offset * 60), 'T') + FractionText(timestamp.nanos()) +
         (offset == 0 ? "Z" : OffsetText(offset, ":"));
}

std::string GoTimeText(const Val& timestamp) {
  const int offset = timestamp.aux();
  const std::string zone = offset == 0 ? "+0000 UTC" : OffsetText(offset, "") + " " + OffsetText(offset, "");
  return DateTimeText(CivilOf(timestamp.int_value() + offset * 60), ' ') + FractionText(timestamp.nanos()) + " " + zone;
}

std::optional<Val> ParseTimestamp(std::string_view text) {
  const auto parsed = object::ParseZonedTime(text);
  if (!parsed.ok()) return std::nullopt;
  if (parsed->time.seconds < kMinUnixTime || parsed->time.seconds > kMaxUnixTime)
    return Val::Error("timestamp overflow");
  return Val::Timestamp(parsed->time.seconds, parsed->time.nanos, parsed->offset_minutes);
}

namespace {

bool IsLetter(std::string_view text, std::size_t at, std::size_t* length) {
  const char c = text[at];
  *length = 1;
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  *length = 2;
  return text.substr(at).starts_with("\xc2\xb5");  // µ
}

std::int64_t UnitNanos(std::string_view unit) {
  struct Unit {
    std::int64_t nanos;
    std::string_view variants[3];  // the last one matches as a prefix
  };
  static constexpr std::int64_t kHour = 3600 * kSecond;
  static constexpr Unit kUnits[] = {
      {1, {"ns", "nano"}},        {1000, {"us", "\xc2\xb5s", "micro"}},  {1'000'000, {"ms", "milli"}},
      {kSecond, {"s", "sec"}},    {60 * kSecond, {"m", "min"}},          {kHour, {"h", "hr", "hour"}},
      {24 * kHour, {"d", "day"}}, {7 * 24 * kHour, {"w", "wk", "week"}},
  };
  const std::string lower = base::ToLower(unit);
  std::int64_t sum = 0;
  for (const Unit& known : kUnits) {
    const std::size_t last = known.variants[2].empty() ? 1 : 2;
    for (std::size_t i = 0; i <= last; ++i) {
      if ((i == last && lower.starts_with(known.variants[i])) || lower == known.variants[i]) sum += known.nanos;
    }
  }
  return sum;
}

}  // namespace

Outcome<std::int64_t, std::string> ParseFormatDuration(std::string_view text) {
  if (const auto parsed = object::ParseDuration(text); parsed.ok()) return *parsed;
  std::uint64_t sum = 0;
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] < '0' || text[at] > '9') {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const std::string_view digits = text.substr(at, end - at);
    at = end;
    while (end < text.size() && std::string_view(" \t\n\r\f\v").find(text[end]) != std::string_view::npos) ++end;
    const std::size_t unit_begin = end;
    std::size_t length = 0;
    while (end < text.size() && IsLetter(text, end, &length)) end += length;
    if (end == unit_begin) continue;
    const auto factor = Atoi(digits);
    if (!factor.ok()) return factor.error();
    if (const std::int64_t unit = UnitNanos(text.substr(unit_begin, end - unit_begin)); unit != 0) {
      found = true;
      sum += static_cast<std::uint64_t>(*factor) * static_cast<std::uint64_t>(unit);
    }
    at = end;
  }
  if (!found) return "unable to parse " + std::string(text) + " as duration";
  return static_cast<std::int64_t>(sum);
}

Outcome<Val, std::string> ParseFormatDate(std::string_view text) {
  const auto parsed = object::ParseDate(text);
  if (!parsed.ok()) return parsed.error();
  return Val::Timestamp(parsed->seconds, parsed->nanos);
}

Outcome<Val, std::string> ParseFormatDateTime(std::string_view text) {
  if (text.empty()) return Val::Timestamp(0, 0);
  if (const auto parsed = object::ParseZonedTime(text); parsed.ok())
    return Val::Timestamp(parsed->time.seconds, parsed->time.nanos, parsed->offset_minutes);
  const auto local = object::ParseLocalTime(text);  // ISO 8601 without a zone is the last layout that strfmt tries.
  if (!local.ok()) return local.error();
  return Val::Timestamp(local->seconds, local->nanos);
}

namespace {

std::int64_t BigEndian(std::string_view bytes) {
  std::uint64_t value = static_cast<signed char>(bytes[0]) < 0 ? ~std::uint64_t{0} : 0;
  for (const char c : bytes) value = (value << 8) | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(value);
}

struct TZifCounts {
  std::size_t utc, standard, leap, times, types, chars;
};

std::optional<TZifCounts> ReadHeader(std::string_view data) {
  constexpr std::size_t kHeaderBytes = 44;
  if (data.size() < kHeaderBytes || !data.starts_with("TZif")) return std::nullopt;
  std::size_t counts[6];
  for (std::size_t i = 0; i < 6; ++i) counts[i] = static_cast<std::size_t>(BigEndian(data.substr(20 + 4 * i, 4)));
  if (std::ranges::any_of(counts, [&](std::size_t count) { return count > data.size(); })) return std::nullopt;
  return TZifCounts{counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]};
}

std::size_t BodyBytes(const TZifCounts& c, std::size_t width) {
  return c.times * width + c.times + c.types * 6 + c.chars + c.leap * (width + 4) + c.standard + c.utc;
}

// Parts of a POSIX TZ text, each taken off the front.
bool TakeName(std::string_view& text) {
  if (text.starts_with('<')) {
    const std::size_t end = text.find('>');
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
    return true;
  }
  std::size_t size = 0;
  while (size < text.size() && ((text[size] >= 'a' && text[size] <= 'z') || (text[size] >= 'A' && text[size] <= 'Z')))
    ++size;
  text.remove_prefix(size);
  return size >= 3;
}

std::optional<int> TakeNumber(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<std::int32_t> TakeTime(std::string_view& text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::int32_t seconds = 0;
  for (const int unit : {3600, 60, 1}) {
    const auto number = TakeNumber(text);
    if (!number) return std::nullopt;
    seconds += *number * unit;
    if (!text.starts_with(':')) break;
    text.remove_prefix(1);
  }
  return negative ? -seconds : seconds;
}

}  // namespace

bool TimeZone::ParseFooter(std::string_view text) {
  if (!TakeName(text)) return false;
  const auto standard = TakeTime(text);
  if (!standard) return false;
  standard_offset_ = daylight_offset_ = -*standard;
  if (text.empty()) return true;
  if (!TakeName(text)) return false;
  daylight_offset_ = standard_offset_ + 3600;
  if (!text.empty() && text[0] != ',') {
    const auto daylight = TakeTime(text);
    if (!daylight) return false;
    daylight_offset_ = -*daylight;
  }
  for (Rule* rule : {&begin_, &end_}) {
    if (!text.starts_with(',')) return false;
    text.remove_prefix(1);
    if (text.starts_with('M')) {
      rule->kind = 'M';
      int* const parts[] = {&rule->month, &rule->week, &rule->day};
      for (int* part : parts) {
        text.remove_prefix(1);
        const auto number = TakeNumber(text);
        if (!number) return false;
        *part = *number;
      }
    } else {
      rule->kind = text.starts_with('J') ? 'J' : 'D';
      if (rule->kind == 'J') text.remove_prefix(1);
      const auto number = TakeNumber(text);
      if (!number) return false;
      rule->day = *number;
    }
    if (text.starts_with('/')) {
      text.remove_prefix(1);
      const auto time = TakeTime(text);
      if (!time) return false;
      rule->time = *time;
    }
  }
  return text.empty();
}

std::optional<TimeZone> TimeZone::Parse(std::string_view data) {
  auto counts = ReadHeader(data);
  if (!counts) return std::nullopt;
  std::size_t width = 4;
  const bool wide = data[4] >= '2';
  std::string_view body = data.substr(44);
  if (wide) {
    if (body.size() < BodyBytes(*counts, 4)) return std::nullopt;
    body.remove_prefix(BodyBytes(*counts, 4));
    counts = ReadHeader(body);
    if (!counts) return std::nullopt;
    body.remove_prefix(44);
    width = 8;
  }
  if (body.size() < BodyBytes(*counts, width) || counts->types == 0) return std::nullopt;
  TimeZone zone;
  const std::string_view times = body.substr(0, counts->times * width);
  const std::string_view indices = body.substr(times.size(), counts->times);
  const std::string_view types = body.substr(times.size() + indices.size(), counts->types * 6);
  const auto offset = [&](std::size_t type) { return static_cast<std::int32_t>(BigEndian(types.substr(type * 6, 4))); };
  for (std::size_t i = 0; i < counts->times; ++i) {
    const auto type = static_cast<unsigned char>(indices[i]);
    if (type >= counts->types) return std::nullopt;
    zone.transitions_.push_back(BigEndian(times.substr(i * width, width)));
    zone.offsets_.push_back(offset(type));
  }
  zone.first_offset_ = offset(0);
  if (wide) {
    std::string_view footer = body.substr(BodyBytes(*counts, width));
    if (footer.size() > 2 && footer.front() == '\n') {
      footer.remove_prefix(1);
      footer = footer.substr(0, footer.find('\n'));
      zone.has_footer_ = !footer.empty() && zone.ParseFooter(footer);
    }
  }
  return zone;
}

std::int64_t TimeZone::RuleSeconds(const Rule& rule, std::int64_t year) const {
  const std::int64_t first = object::DaysFromCivil(year, 1, 1);
  const bool leap = object::DaysFromCivil(year + 1, 1, 1) - first == 366;
  std::int64_t day = 0;
  if (rule.kind == 'J') {
    day = rule.day - 1 + (leap && rule.day >= 60 ? 1 : 0);
  } else if (rule.kind == 'D') {
    day = rule.day;
  } else {
    const std::int64_t month_first = object::DaysFromCivil(year, rule.month, 1);
    const std::int64_t next =
        rule.month == 12 ? object::DaysFromCivil(year + 1, 1, 1) : object::DaysFromCivil(year, rule.month + 1, 1);
    const std::int64_t week_day = ((month_first + 4) % 7 + 7) % 7;
    std::int64_t date = month_first + (rule.day - week_day + 7) % 7 + (rule.week - 1) * 7;
    while (date >= next) date -= 7;
    day = date - first;
  }
  return day * kDaySeconds + rule.time;
}

std::int32_t TimeZone::OffsetAt(std::int64_t seconds) const {
  if (!transitions_.empty() && seconds < transitions_.front()) return first_offset_;
  const bool beyond = transitions_.empty() || seconds >= transitions_.back();
  if (beyond && has_footer_) {
    if (begin_.kind == 0) return standard_offset_;
    const std::int64_t year = CivilOf(seconds + standard_offset_).year;
    const std::int64_t first = object::DaysFromCivil(year, 1, 1) * kDaySeconds;
    const std::int64_t begin = first + RuleSeconds(begin_, year) - standard_offset_;
    const std::int64_t end = first + RuleSeconds(end_, year) - daylight_offset_;
    const bool daylight = begin < end ? seconds >= begin && seconds < end : seconds >= begin || seconds < end;
    return daylight ? daylight_offset_ : standard_offset_;
  }
  if (transitions_.empty()) return first_offset_;
  const auto after = std::upper_bound(transitions_.begin(), transitions_.end(), seconds);
  return offsets_[static_cast<std::size_t>(after - transitions_.begin()) - 1];
}

}  // namespace keelson::cel
