#include "registry/rules/table.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "object/time.h"

namespace keelson::registry::rules {

namespace {

std::string Pair(std::int64_t big, std::string_view big_unit, std::int64_t small, std::string_view small_unit) {
  std::string text = std::to_string(big) + std::string(big_unit);
  if (small != 0) text += std::to_string(small) + std::string(small_unit);
  return text;
}

}  // namespace

std::string HumanDuration(std::chrono::nanoseconds duration) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  constexpr std::int64_t kYear = 365 * kDay;
  const std::int64_t seconds = duration.count() / 1'000'000'000;  // Towards zero, as Go's int(d.Seconds()).
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * kMinute) return std::to_string(seconds) + "s";
  if (seconds < 10 * kMinute) return Pair(seconds / kMinute, "m", seconds % kMinute, "s");
  if (seconds < 3 * kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < 8 * kHour) return Pair(seconds / kHour, "h", seconds / kMinute % 60, "m");
  if (seconds < 2 * kDay) return std::to_string(seconds / kHour) + "h";
  if (seconds < 8 * kDay) return Pair(seconds / kDay, "d", seconds / kHour % 24, "h");
  if (seconds < 2 * kYear) return std::to_string(seconds / kDay) + "d";
  if (seconds < 8 * kYear) return Pair(seconds / kYear, "y", seconds / kDay % 365, "d");
  return std::to_string(seconds / kYear) + "y";
}

std::string TimeSince(const base::Clock& clock, std::string_view time) {
  const auto parsed = object::ParseTime(time);
  if (time.empty() || !parsed.ok() || parsed->IsZero()) return "<unknown>";
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(clock.Now().time_since_epoch());
  // Bounded before multiplying: an age of centuries is only ever printed in years.
  constexpr std::int64_t kSecondsMax = 9'000'000'000;
  const std::int64_t age = std::clamp(now.count() / 1'000'000'000 - parsed->seconds, -kSecondsMax, kSecondsMax);
  return HumanDuration(std::chrono::nanoseconds(age * 1'000'000'000 + now.count() % 1'000'000'000 - parsed->nanos));
}

Value Age(base::Arena& arena, const base::Clock& clock, const Value& object) {
  return Value::String(arena, TimeSince(clock, object["metadata"]["creationTimestamp"].as_string()));
}

Value NameCell(const Value& object) { return object["metadata"]["name"].as_string(); }

Value TextOr(std::string_view text, std::string_view fallback) { return text.empty() ? fallback : text; }

std::string FormatLabelSelector(const Value& selector) {
  // Requirements by key, as Go's selectors keep them; labels come as equalities.
  struct Requirement {
    std::string_view key;
    std::string text;
  };
  std::vector<Requirement> requirements;
  for (const auto& member : selector["matchLabels"].members()) {
    requirements.push_back({member.key, std::string(member.key) + "=" + std::string(member.value.as_string())});
  }
  for (const Value& expression : selector["matchExpressions"].items()) {
    const std::string_view key = expression["key"].as_string();
    const std::string_view op = expression["operator"].as_string();
    std::vector<std::string> values;
    for (const Value& value : expression["values"].items()) values.emplace_back(value.as_string());
    std::ranges::sort(values);
    const std::string list = " (" + base::Join(values, ",") + ")";
    std::string text(key);
    if (op == "In") {
      text += " in" + list;
    } else if (op == "NotIn") {
      text += " notin" + list;
    } else if (op == "DoesNotExist") {
      text = "!" + text;
    }
    requirements.push_back({key, std::move(text)});
  }
  if (requirements.empty()) return "<none>";
  // The keys of labels differ; expressions of the same key keep their order among the few there are.
  for (std::size_t i = 1; i < requirements.size(); ++i) {
    for (std::size_t j = i; j > 0 && requirements[j].key < requirements[j - 1].key; --j)
      std::swap(requirements[j], requirements[j - 1]);
  }
  std::string out;
  for (const Requirement& requirement : requirements) out += (out.empty() ? "" : ",") + requirement.text;
  return out;
}

}  // namespace keelson::registry::rules
