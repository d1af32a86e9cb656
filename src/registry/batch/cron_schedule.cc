#include "registry/batch/cron_schedule.h"

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/strings.h"
#include "object/duration.h"
#include "registry/batch/time_zones.h"

namespace keelson::registry::batch {
namespace {

struct Bounds {
  std::uint64_t min, max;
  std::span<const std::string_view> names;  // the first means `min`
};

constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::string_view kDays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr std::array<Bounds, 5> kFields = {{{0, 59, {}}, {0, 23, {}}, {1, 31, {}}, {1, 12, kMonths}, {0, 6, kDays}}};

// White space as Go's unicode.IsSpace has it within Latin-1; other spaces of Unicode do not occur in schedules that
// parse.
std::vector<std::string_view> Fields(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string_view> fields;
  for (std::size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    fields.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kSpace, end);
  }
  return fields;
}

// strconv.Atoi: an optional sign and digits.
std::optional<std::int64_t> Atoi(std::string_view text, std::string& problem) {
  if (const auto value = base::ParseInt64(text)) return value;
  std::string_view digits = text;
  if (digits.starts_with('+') || digits.starts_with('-')) digits.remove_prefix(1);
  const bool number = !digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos;
  problem = "failed to parse int from " + std::string(text) + ": strconv.Atoi: parsing " + base::GoQuote(text) +
            (number ? ": value out of range" : ": invalid syntax");
  return std::nullopt;
}

std::optional<std::uint64_t> Number(std::string_view text, std::string& problem) {
  const auto value = Atoi(text, problem);
  if (!value) return std::nullopt;
  if (*value < 0) {
    problem = "negative number (" + std::to_string(*value) + ") not allowed: " + std::string(text);
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*value);
}

std::optional<std::uint64_t> NumberOrName(std::string_view text, const Bounds& bounds, std::string& problem) {
  const std::string lower = base::ToLower(text);
  for (std::size_t i = 0; i < bounds.names.size(); ++i) {
    if (bounds.names[i] == lower) return bounds.min + i;
  }
  return Number(text, problem);
}

// One of a field's comma separated parts: "*", "a", "a-b", each with "/step".
std::string RangeProblem(std::string_view expression, const Bounds& bounds) {
  const std::string text(expression);
  const auto range_and_step = base::Split(expression, '/');
  const auto low_and_high = base::Split(range_and_step[0], '-');
  std::string problem;
  std::uint64_t start = bounds.min, end = bounds.max, step = 1;
  if (low_and_high[0] != "*" && low_and_high[0] != "?") {
    const auto low = NumberOrName(low_and_high[0], bounds, problem);
    if (!low) return problem;
    start = end = *low;
    if (low_and_high.size() == 2) {
      const auto high = NumberOrName(low_and_high[1], bounds, problem);
      if (!high) return problem;
      end = *high;
    } else if (low_and_high.size() > 2) {
      return "too many hyphens: " + text;
    }
  }
  if (range_and_step.size() == 2) {
    const auto parsed = Number(range_and_step[1], problem);
    if (!parsed) return problem;
    step = *parsed;
    if (low_and_high.size() == 1) end = bounds.max;  // "3/5" goes on to the end
  } else if (range_and_step.size() > 2) {
    return "too many slashes: " + text;
  }
  const auto number = [](std::uint64_t value) { return "(" + std::to_string(value) + ")"; };
  if (start < bounds.min)
    return "beginning of range " + number(start) + " below minimum " + number(bounds.min) + ": " + text;
  if (end > bounds.max) return "end of range " + number(end) + " above maximum " + number(bounds.max) + ": " + text;
  if (start > end) return "beginning of range " + number(start) + " beyond end of range " + number(end) + ": " + text;
  if (step == 0) return "step of range should be a positive number: " + text;
  return {};
}

std::string DescriptorProblem(std::string_view descriptor) {
  for (const std::string_view known :
       {"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}) {
    if (descriptor == known) return {};
  }
  constexpr std::string_view kEvery = "@every ";
  if (!descriptor.starts_with(kEvery)) return "unrecognized descriptor: " + std::string(descriptor);
  const auto duration = object::ParseDuration(descriptor.substr(kEvery.size()));
  if (duration.ok()) return {};
  return "failed to parse duration " + std::string(descriptor) + ": " + duration.error();
}

}  // namespace

std::string CronScheduleProblem(std::string_view schedule) {
  if (schedule.empty()) return "empty spec string";
  if (schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=")) {
    const std::size_t space = schedule.find(' '), equals = schedule.find('=');
    if (space == std::string_view::npos) {
      return "invalid schedule format: runtime error: slice bounds out of range [:-1]";  // the parser panics, and
                                                                                         // upstream says so
    }
    const std::string zone(schedule.substr(equals + 1, space - equals - 1));
    if (!zone.empty() && zone != "Local" && !IsTimeZone(zone))
      return "provided bad location " + zone + ": unknown time zone " + zone;
    schedule = base::Trim(schedule.substr(space));
  }
  if (schedule.starts_with('@')) return DescriptorProblem(schedule);
  const auto fields = Fields(schedule);
  if (fields.size() != kFields.size()) {
    std::string list;
    for (const std::string_view field : fields) list.append(list.empty() ? "" : " ").append(field);
    return "expected exactly 5 fields, found " + std::to_string(fields.size()) + ": [" + list + "]";
  }
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    for (const std::string_view part : base::Split(fields[i], ',')) {
      if (part.empty()) continue;
      if (std::string problem = RangeProblem(part, kFields[i]); !problem.empty()) return problem;
    }
  }
  return {};
}

}  // namespace keelson::registry::batch
