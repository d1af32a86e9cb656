#include "registry/cells.h"

#include <chrono>

#include "object/age.h"

namespace keelson::registry {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

std::string JoinedMember(Value pod_spec, std::string_view key) {
  std::string text;
  for (const Value container : pod_spec["containers"].items()) {
    if (!text.empty()) text += ',';
    text += container[key].as_string();
  }
  return text;
}

}  // namespace

std::optional<std::int64_t> TimeNanoseconds(std::string_view text) {
  // 2006-01-02T15:04:05[.fraction](Z|±hh:mm)
  const auto number = [&](std::size_t at, std::size_t digits) -> std::int64_t {
    std::int64_t value = 0;
    for (std::size_t i = at; i < at + digits; ++i) {
      if (i >= text.size() || text[i] < '0' || text[i] > '9') return -1;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  if (text.size() < 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const std::int64_t year = number(0, 4), month = number(5, 2), day = number(8, 2);
  const std::int64_t hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (year < 0 || month < 1 || day < 1 || hour < 0 || minute < 0 || second < 0) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  std::int64_t nanoseconds = 0;
  std::size_t at = 19;
  if (text[at] == '.') {
    std::int64_t scale = kSecond / 10;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10)
      nanoseconds += (text[at] - '0') * scale;
  }
  std::int64_t offset = 0;
  if (at >= text.size()) return std::nullopt;
  if (text[at] != 'Z') {
    const std::int64_t offset_hours = number(at + 1, 2), offset_minutes = number(at + 4, 2);
    if ((text[at] != '+' && text[at] != '-') || offset_hours < 0 || offset_minutes < 0) return std::nullopt;
    offset = (offset_hours * 60 + offset_minutes) * 60 * (text[at] == '-' ? -1 : 1);
  }
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + hour) * 60 + minute) * 60 * kSecond + (second - offset) * kSecond + nanoseconds;
}

std::string Age(const base::Clock& clock, Value time) {
  const auto then = TimeNanoseconds(time.as_string());
  if (!then) return "<unknown>";
  std::int64_t seconds = *then / kSecond;
  std::int64_t nanos = *then % kSecond;
  if (nanos < 0) seconds -= 1, nanos += kSecond;
  return object::Age(clock, {seconds, static_cast<std::int32_t>(nanos)});
}

std::string ContainerNames(Value pod_spec) { return JoinedMember(pod_spec, "name"); }
std::string ContainerImages(Value pod_spec) { return JoinedMember(pod_spec, "image"); }

}  // namespace keelson::registry
