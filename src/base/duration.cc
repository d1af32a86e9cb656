#include "base/duration.h"

#include <cstdint>

#include "base/strings.h"

namespace keelson::base {
namespace {

// Writes value / 10^digits: the fraction without trailing zeros in front of `at`, and leaves the whole part in `value`.
char* WriteFraction(char* at, std::uint64_t& value, int digits) {
  bool printing = false;
  for (int i = 0; i < digits; ++i) {
    const int digit = static_cast<int>(value % 10);
    printing = printing || digit != 0;
    if (printing) *--at = static_cast<char>('0' + digit);
    value /= 10;
  }
  if (printing) *--at = '.';
  return at;
}

char* WriteInteger(char* at, std::uint64_t value) {
  do {
    *--at = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  return at;
}

// The unit at the start of `text`: everything up to the next number. `scale` is its nanoseconds, 0 when it is not
// known.
std::string_view UnitAt(std::string_view text, std::uint64_t& scale) {
  struct Unit {
    std::string_view name;
    std::uint64_t nanoseconds;
  };
  static constexpr Unit kUnits[] = {
      {"ns", 1},         {"us", 1'000},        {"µs", 1'000},         {"μs", 1'000},
      {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};
  std::size_t length = 0;
  while (length < text.size() && text[length] != '.' && (text[length] < '0' || text[length] > '9')) ++length;
  scale = 0;
  for (const Unit& unit : kUnits) {
    if (text.substr(0, length) == unit.name) scale = unit.nanoseconds;
  }
  return text.substr(0, length);
}

constexpr std::uint64_t kMagnitudeMax = std::uint64_t{1} << 63;

}  // namespace

std::string FormatDuration(std::chrono::nanoseconds duration) {
  const bool negative = duration.count() < 0;
  std::uint64_t value = static_cast<std::uint64_t>(duration.count());
  if (negative) value = -value;
  if (value == 0) return "0s";

  char buffer[40];
  char* const end = buffer + sizeof buffer;
  char* at = end;
  *--at = 's';
  if (value < 1'000'000'000) {
    int digits = 0;
    if (value < 1'000) {
      *--at = 'n';
    } else if (value < 1'000'000) {
      digits = 3;
      *--at = '\xb5';  // µ is two bytes
      *--at = '\xc2';
    } else {
      digits = 6;
      *--at = 'm';
    }
    at = WriteFraction(at, value, digits);
    at = WriteInteger(at, value);
  } else {
    at = WriteFraction(at, value, 9);
    at = WriteInteger(at, value % 60);
    value /= 60;
    if (value > 0) {
      *--at = 'm';
      at = WriteInteger(at, value % 60);
      value /= 60;
      if (value > 0) {
        *--at = 'h';
        at = WriteInteger(at, value);
      }
    }
  }
  if (negative) *--at = '-';
  return std::string(at, end);
}

std::optional<std::chrono::nanoseconds> ParseDuration(std::string_view text, std::string* error) {
  const std::string_view original = text;
  auto fail = [&](std::string_view what) -> std::nullopt_t {
    if (error != nullptr) *error = "time: " + std::string(what) + " duration " + GoQuote(original);
    return std::nullopt;
  };
  if (text.empty()) return fail("invalid");
  bool negative = false;
  if (text[0] == '-' || text[0] == '+') {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text == "0") return std::chrono::nanoseconds{0};
  if (text.empty()) return fail("invalid");

  std::uint64_t total = 0;
  while (!text.empty()) {
    std::uint64_t whole = 0, fraction = 0;
    double scale = 1;
    bool any_digit = false;
    std::size_t at = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
      any_digit = true;
      if (whole > kMagnitudeMax / 10) return fail("invalid");
      whole = whole * 10 + static_cast<std::uint64_t>(text[at] - '0');
      if (whole > kMagnitudeMax) return fail("invalid");
    }
    if (at < text.size() && text[at] == '.') {
      bool overflow = false;
      for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
        any_digit = true;
        if (overflow || fraction > (kMagnitudeMax - 1) / 10) {
          overflow = true;  // More digits than nanoseconds have: the rest cannot matter.
          continue;
        }
        fraction = fraction * 10 + static_cast<std::uint64_t>(text[at] - '0');
        scale *= 10;
      }
    }
    if (!any_digit) return fail("invalid");
    text.remove_prefix(at);
    std::uint64_t unit = 0;
    const std::string_view unit_name = UnitAt(text, unit);
    if (unit_name.empty()) return fail("missing unit in");
    if (unit == 0) return fail("unknown unit " + GoQuote(unit_name) + " in");
    text.remove_prefix(unit_name.size());
    if (whole > kMagnitudeMax / unit) return fail("invalid");
    std::uint64_t value = whole * unit;
    if (fraction > 0) {
      value += static_cast<std::uint64_t>(static_cast<double>(fraction) * (static_cast<double>(unit) / scale));
      if (value > kMagnitudeMax) return fail("invalid");
    }
    total += value;
    if (total > kMagnitudeMax) return fail("invalid");
  }
  if (negative) return std::chrono::nanoseconds{static_cast<std::int64_t>(-total)};
  if (total > kMagnitudeMax - 1) return fail("invalid");
  return std::chrono::nanoseconds{static_cast<std::int64_t>(total)};
}

}  // namespace keelson::base
