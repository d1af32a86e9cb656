#include "object/time.h"

#include <cstring>

#include "base/strings.h"

namespace keelson::object {
namespace {

constexpr std::string_view kLayout = "2006-01-02T15:04:05Z07:00";
constexpr std::string_view kMicroLayout = "2006-01-02T15:04:05.000000Z07:00";
constexpr std::string_view kDateLayout = "2006-01-02";
constexpr std::string_view kLocalLayout = "2006-01-02T15:04:05";
constexpr std::int64_t kDaySeconds = 86400;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
int Two(const char* text) { return (text[0] - '0') * 10 + (text[1] - '0'); }

int DaysIn(std::int64_t year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

char* WriteDigits(char* out, std::uint32_t value, int width) {
  for (int i = width - 1; i >= 0; --i) {
    out[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  return out + width;
}

char* WriteDateTime(std::int64_t seconds, char* out) {
  std::int64_t days = seconds / kDaySeconds;
  std::int64_t rest = seconds % kDaySeconds;
  if (rest < 0) rest += kDaySeconds, --days;
  const CivilDate date = CivilFromDays(days);
  std::int64_t year = date.year;
  const auto month = static_cast<std::uint32_t>(date.month), day = static_cast<std::uint32_t>(date.day);
  if (year < 0) *out++ = '-', year = -year;
  if (year > 9999) {
    const std::string text = std::to_string(year);
    std::memcpy(out, text.data(), text.size());
    out += text.size();
  } else {
    out = WriteDigits(out, static_cast<std::uint32_t>(year), 4);
  }
  *out++ = '-';
  out = WriteDigits(out, month, 2);
  *out++ = '-';
  out = WriteDigits(out, day, 2);
  *out++ = 'T';
  const auto clock = static_cast<std::uint32_t>(rest);
  out = WriteDigits(out, clock / 3600, 2);
  *out++ = ':';
  out = WriteDigits(out, clock / 60 % 60, 2);
  *out++ = ':';
  return WriteDigits(out, clock % 60, 2);
}

// Parses the text by the layout; errors are in Go's words.
class Parser {
 public:
  Parser(std::string_view text, std::string_view layout) : text_(text), layout_(layout), rest_(text) {}

  std::int64_t offset = 0;  // of the zone, in seconds

  Outcome<Time, std::string> Run() {
    int month = 0, day = 0, hour = 0, minute = 0, second = 0;
    std::int64_t year = 0;
    if (rest_.size() < 4 || !IsDigit(rest_[0]) || !IsDigit(rest_[1]) || !IsDigit(rest_[2]) || !IsDigit(rest_[3]))
      return Cannot("2006");
    year = Two(rest_.data()) * 100 + Two(rest_.data() + 2);
    rest_.remove_prefix(4);
    if (!Literal("-")) return Cannot("-");
    if (!Number(month)) return Cannot("01");
    if (month < 1 || month > 12) return Range("month");
    if (!Literal("-")) return Cannot("-");
    if (!Number(day)) return Cannot("02");
    if (layout_ == kDateLayout) return Finish(year, month, day, 0, 0);
    if (!Literal("T")) return Cannot("T");
    if (!Number(hour)) return Cannot("15");
    if (hour > 23) return Range("hour");
    if (!Literal(":")) return Cannot(":");
    if (!Number(minute)) return Cannot("04");
    if (minute > 59) return Range("minute");
    if (!Literal(":")) return Cannot(":");
    if (!Number(second)) return Cannot("05");
    if (second > 59) return Range("second");
    std::int32_t nanos = 0;
    if (layout_ == kMicroLayout) {
      // A layout of six zeros wants exactly six digits.
      if (rest_.size() < 7) return Cannot(".000000");
      if (rest_[0] != '.' && rest_[0] != ',') return Cannot(".000000");
      for (std::size_t i = 1; i < 7; ++i) {
        if (!IsDigit(rest_[i])) return Cannot(".000000");
      }
      nanos = Fraction(6);
    } else if (rest_.size() >= 2 && (rest_[0] == '.' || rest_[0] == ',') && IsDigit(rest_[1])) {
      std::size_t digits = 1;
      while (digits + 1 < rest_.size() && IsDigit(rest_[digits + 1])) ++digits;
      nanos = Fraction(digits);
    }
    if (layout_ != kLocalLayout && !Zone(offset)) return Cannot("Z07:00");
    if (zone_range_ != nullptr) return Range(zone_range_);
    return Finish(year, month, day, hour * 3600 + minute * 60 + second, nanos);
  }

 private:
  Outcome<Time, std::string> Finish(std::int64_t year, int month, int day, std::int64_t seconds, std::int32_t nanos) {
    if (!rest_.empty()) return "parsing time " + base::GoQuote(text_) + ": extra text: " + base::GoQuote(rest_);
    if (day < 1 || day > DaysIn(year, month)) return Range("day");
    return Time{DaysFromCivil(year, month, day) * kDaySeconds + seconds - offset, nanos};
  }
  bool Literal(std::string_view literal) {
    if (!rest_.starts_with(literal)) return false;
    rest_.remove_prefix(literal.size());
    return true;
  }
  // Two digits; where Go's layout is "15" one digit is accepted as well, but RFC 3339 text never has it.
  bool Number(int& out) {
    if (rest_.size() < 2 || !IsDigit(rest_[0]) || !IsDigit(rest_[1])) return false;
    out = Two(rest_.data());
    rest_.remove_prefix(2);
    return true;
  }
  std::int32_t Fraction(std::size_t digits) {
    std::int32_t nanos = 0;
    for (std::size_t i = 1; i <= 9; ++i) nanos = nanos * 10 + (i <= digits ? rest_[i] - '0' : 0);
    rest_.remove_prefix(1 + digits);
    return nanos;
  }
  bool Zone(std::int64_t& east) {
    if (Literal("Z")) return true;
    if (rest_.size() < 6 || (rest_[0] != '+' && rest_[0] != '-') || rest_[3] != ':') return false;
    for (const std::size_t i : {1u, 2u, 4u, 5u}) {
      if (!IsDigit(rest_[i])) return false;
    }
    const int hours = Two(rest_.data() + 1), minutes = Two(rest_.data() + 4);
    if (hours > 24) zone_range_ = "time zone offset hour";
    if (minutes > 60) zone_range_ = "time zone offset minute";
    east = hours * 3600 + minutes * 60;
    if (rest_[0] == '-') east = -east;
    rest_.remove_prefix(6);
    return true;
  }
  std::string Cannot(std::string_view element) const {
    return "parsing time " + base::GoQuote(text_) + " as " + base::GoQuote(layout_) + ": cannot parse " +
           base::GoQuote(rest_) + " as " + base::GoQuote(element);
  }
  std::string Range(std::string_view what) const {
    return "parsing time " + base::GoQuote(text_) + ": " + std::string(what) + " out of range";
  }

  std::string_view text_, layout_, rest_;
  const char* zone_range_ = nullptr;
};

// The form that we write ourselves, 2006-01-02T15:04:05Z or with six digits of a second: nearly all that is read.
bool ParseCanonical(std::string_view text, bool micro, Time& out) {
  constexpr std::size_t kSize = 20, kMicroSize = 27;
  if (text.size() != (micro ? kMicroSize : kSize) || text.back() != 'Z') return false;
  const char* at = text.data();
  bool digits = true;
  const auto two = [&](int i) {
    const unsigned high = static_cast<unsigned char>(at[i]) - unsigned{'0'};
    const unsigned low = static_cast<unsigned char>(at[i + 1]) - unsigned{'0'};
    digits = digits && high <= 9 && low <= 9;
    return static_cast<int>(high * 10 + low);
  };
  if (at[4] != '-' || at[7] != '-' || at[10] != 'T' || at[13] != ':' || at[16] != ':') return false;
  const std::int64_t year = two(0) * 100 + two(2);
  const int month = two(5), day = two(8), hour = two(11), minute = two(14), second = two(17);
  int micros = 0;
  if (micro) {
    if (at[19] != '.') return false;
    micros = two(20) * 10000 + two(22) * 100 + two(24);
  }
  if (!digits || month < 1 || month > 12 || day < 1 || day > DaysIn(year, month)) return false;
  if (hour > 23 || minute > 59 || second > 59) return false;
  out = {DaysFromCivil(year, month, day) * kDaySeconds + hour * 3600 + minute * 60 + second, micros * 1000};
  return true;
}

}  // namespace

std::int64_t DaysFromCivil(std::int64_t year, int month, int day) {
  year -= month <= 2;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto yoe = static_cast<std::uint32_t>(year - era * 400);
  const std::uint32_t doy = (153 * static_cast<std::uint32_t>(month > 2 ? month - 3 : month + 9) + 2) / 5 +
                            static_cast<std::uint32_t>(day) - 1;
  const std::uint32_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + static_cast<std::int64_t>(doe) - 719468;
}

CivilDate CivilFromDays(std::int64_t days) {
  // Hinnant's civil_from_days.
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto doe = static_cast<std::uint32_t>(days - era * 146097);
  const std::uint32_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const std::uint32_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const std::uint32_t mp = (5 * doy + 2) / 153;
  const int month = static_cast<int>(mp < 10 ? mp + 3 : mp - 9);
  const std::int64_t year = static_cast<std::int64_t>(yoe) + era * 400 + (month <= 2 ? 1 : 0);
  return {year, month, static_cast<int>(doy - (153 * mp + 2) / 5 + 1)};
}

Outcome<ZonedTime, std::string> ParseZonedTime(std::string_view text) {
  Time time;
  if (ParseCanonical(text, /*micro=*/false, time)) return ZonedTime{time, 0};
  Parser parser(text, kLayout);
  auto parsed = parser.Run();
  if (!parsed.ok()) return parsed.error();
  return ZonedTime{*parsed, static_cast<std::int16_t>(parser.offset / 60)};
}

Outcome<Time, std::string> ParseDate(std::string_view text) { return Parser(text, kDateLayout).Run(); }
Outcome<Time, std::string> ParseLocalTime(std::string_view text) { return Parser(text, kLocalLayout).Run(); }

Outcome<Time, std::string> ParseTime(std::string_view text, bool micro) {
  Time time;
  if (ParseCanonical(text, micro, time)) return time;
  return Parser(text, micro ? kMicroLayout : kLayout).Run();
}

std::size_t WriteTime(std::int64_t seconds, char* out) {
  char* end = WriteDateTime(seconds, out);
  *end++ = 'Z';
  return static_cast<std::size_t>(end - out);
}

std::size_t WriteMicroTime(Time time, char* out) {
  char* end = WriteDateTime(time.seconds, out);
  *end++ = '.';
  end = WriteDigits(end, static_cast<std::uint32_t>(time.nanos) / 1000, 6);
  *end++ = 'Z';
  return static_cast<std::size_t>(end - out);
}

std::string FormatTime(std::int64_t seconds) {
  char text[kTimeTextMax];
  return std::string(text, WriteTime(seconds, text));
}

std::string FormatMicroTime(Time time) {
  char text[kTimeTextMax];
  return std::string(text, WriteMicroTime(time, text));
}

}  // namespace keelson::object
