#include "object/duration.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace keelson::object {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kOverflow = 1ull << 63;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::uint64_t Unit(std::string_view name) {
  struct Named {
    std::string_view name;
    std::uint64_t nanoseconds;
  };
  constexpr Named kUnits[] = {{"ns", 1},         {"us", 1000},   {"\xC2\xB5s", 1000}, {"\xCE\xBCs", 1000},
                              {"ms", 1'000'000}, {"s", kSecond}, {"m", 60 * kSecond}, {"h", 3600 * kSecond}};
  const auto* found = std::ranges::find(kUnits, name, &Named::name);
  return found == std::end(kUnits) ? 0 : found->nanoseconds;
}

// Digits into `value`; false when they outgrow 63 bits.
bool LeadingInt(std::string_view& text, std::uint64_t& value) {
  value = 0;
  while (!text.empty() && IsDigit(text[0])) {
    if (value > kOverflow / 10) return false;
    value = value * 10 + static_cast<std::uint64_t>(text[0] - '0');
    if (value > kOverflow) return false;
    text.remove_prefix(1);
  }
  return true;
}

// Digits after the point: what does not fit is dropped, as Go does.
void LeadingFraction(std::string_view& text, std::uint64_t& value, double& scale) {
  value = 0;
  scale = 1;
  bool overflow = false;
  while (!text.empty() && IsDigit(text[0])) {
    const auto digit = static_cast<std::uint64_t>(text[0] - '0');
    text.remove_prefix(1);
    if (overflow) continue;
    if (value > (kOverflow - 1) / 10) {
      overflow = true;
      continue;
    }
    const std::uint64_t next = value * 10 + digit;
    if (next > kOverflow) {
      overflow = true;
      continue;
    }
    value = next;
    scale *= 10;
  }
}

}  // namespace

Outcome<std::int64_t, std::string> ParseDuration(std::string_view text) {
  const auto invalid = [&] { return "time: invalid duration " + base::GoQuote(text); };
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return 0;
  if (rest.empty()) return invalid();
  std::uint64_t total = 0;
  while (!rest.empty()) {
    if (rest[0] != '.' && !IsDigit(rest[0])) return invalid();
    std::uint64_t whole = 0, fraction = 0;
    double scale = 1;
    const std::size_t before = rest.size();
    if (!LeadingInt(rest, whole)) return invalid();
    bool digits = rest.size() != before;
    if (!rest.empty() && rest[0] == '.') {
      rest.remove_prefix(1);
      const std::size_t at = rest.size();
      LeadingFraction(rest, fraction, scale);
      digits = digits || rest.size() != at;
    }
    if (!digits) return invalid();
    std::size_t size = 0;
    while (size < rest.size() && rest[size] != '.' && !IsDigit(rest[size])) ++size;
    if (size == 0) return "time: missing unit in duration " + base::GoQuote(text);
    const std::uint64_t unit = Unit(rest.substr(0, size));
    if (unit == 0)
      return "time: unknown unit " + base::GoQuote(rest.substr(0, size)) + " in duration " + base::GoQuote(text);
    rest.remove_prefix(size);
    if (whole > kOverflow / unit) return invalid();
    whole *= unit;
    if (fraction > 0) {
      whole += static_cast<std::uint64_t>(static_cast<double>(fraction) * (static_cast<double>(unit) / scale));
      if (whole > kOverflow) return invalid();
    }
    total += whole;
    if (total > kOverflow) return invalid();
  }
  if (negative) return static_cast<std::int64_t>(-total);
  if (total > kOverflow - 1) return invalid();
  return static_cast<std::int64_t>(total);
}

std::size_t WriteDuration(std::int64_t nanoseconds, char* out) {
  if (nanoseconds == 0) {
    std::memcpy(out, "0s", 2);
    return 2;
  }
  char buffer[kDurationTextMax];
  char* at = buffer + sizeof buffer;
  const bool negative = nanoseconds < 0;
  auto rest = negative ? -static_cast<std::uint64_t>(nanoseconds) : static_cast<std::uint64_t>(nanoseconds);
  // A fraction of `places` digits, trailing zeros left out.
  const auto fraction = [&](int places) {
    bool print = false;
    for (int i = 0; i < places; ++i) {
      const auto digit = rest % 10;
      print = print || digit != 0;
      if (print) *--at = static_cast<char>('0' + digit);
      rest /= 10;
    }
    if (print) *--at = '.';
  };
  const auto integer = [&](std::uint64_t value) {
    do {
      *--at = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
  };
  *--at = 's';
  if (rest < kSecond) {
    int places = 0;
    if (rest < 1000) {
      *--at = 'n';
    } else if (rest < 1'000'000) {
      places = 3;
      *--at = '\xB5';  // the micro sign, in UTF-8
      *--at = '\xC2';
    } else {
      places = 6;
      *--at = 'm';
    }
    fraction(places);
    integer(rest);
  } else {
    fraction(9);
    integer(rest % 60);
    rest /= 60;
    if (rest > 0) {
      *--at = 'm';
      integer(rest % 60);
      rest /= 60;
      if (rest > 0) {
        *--at = 'h';
        integer(rest);
      }
    }
  }
  if (negative) *--at = '-';
  const auto size = static_cast<std::size_t>(buffer + sizeof buffer - at);
  std::memcpy(out, at, size);
  return size;
}

std::string FormatDuration(std::int64_t nanoseconds) {
  char text[kDurationTextMax];
  return std::string(text, WriteDuration(nanoseconds, text));
}

}  // namespace keelson::object
