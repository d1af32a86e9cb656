#include "object/duration.h"

#include <algorithm>

#include "base/duration.h"

namespace keelson::object {

Outcome<std::int64_t, std::string> ParseDuration(std::string_view text) {
  std::string error;
  const auto parsed = base::ParseDuration(text, &error);
  if (!parsed) return error;
  return parsed->count();
}

std::size_t WriteDuration(std::int64_t nanoseconds, char* out) {
  const std::string text = FormatDuration(nanoseconds);
  std::ranges::copy(text, out);
  return text.size();
}

std::string FormatDuration(std::int64_t nanoseconds) {
  return base::FormatDuration(std::chrono::nanoseconds(nanoseconds));
}

}  // namespace keelson::object
