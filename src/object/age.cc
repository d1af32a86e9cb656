#include "object/age.h"

#include <algorithm>
#include <cstdio>

#include "base/random.h"

namespace keelson::object {
namespace {

// A mark is an unguessable text, so that no object can contain it, and the time in hexadecimal.
constexpr std::size_t kSecondsDigits = 16;
constexpr std::size_t kNanosDigits = 8;

const std::string& Secret() {
  static const std::string secret = [] {
    std::string text;
    for (int i = 0; i < 4; ++i) {
      char digits[9];
      std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(base::Random::Real().Next()));
      text += digits;
    }
    return text;
  }();
  return secret;
}

std::string Mark(Time time) {
  char digits[kSecondsDigits + kNanosDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx%08x", static_cast<unsigned long long>(time.seconds),
                static_cast<unsigned>(time.nanos));
  return Secret() + digits;
}

std::uint64_t FromHex(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) value = value << 4 | static_cast<std::uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  return value;
}

std::string Two(std::int64_t big, char big_unit, std::int64_t small, char small_unit) {
  std::string text = std::to_string(big) + big_unit;
  if (small != 0) text += std::to_string(small) + small_unit;
  return text;
}

std::string AgeNow(std::chrono::nanoseconds now, Time time) {
  // Bounded before multiplying: an age of centuries is only ever printed in years.
  constexpr std::int64_t kSecondsMax = 9'000'000'000;
  const std::int64_t age = std::clamp(now.count() / 1'000'000'000 - time.seconds, -kSecondsMax, kSecondsMax);
  return HumanDuration(std::chrono::nanoseconds(age * 1'000'000'000 + now.count() % 1'000'000'000 - time.nanos));
}

std::chrono::nanoseconds SinceEpoch(const base::Clock& clock) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(clock.Now().time_since_epoch());
}

}  // namespace

std::string HumanDuration(std::chrono::nanoseconds duration) {
  const std::int64_t seconds = duration.count() / 1'000'000'000;  // towards zero, as Go's int(d.Seconds())
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * 60) return std::to_string(seconds) + "s";
  const std::int64_t minutes = seconds / 60;
  if (minutes < 10) return Two(minutes, 'm', seconds % 60, 's');
  if (minutes < 3 * 60) return std::to_string(minutes) + "m";
  const std::int64_t hours = minutes / 60;
  if (hours < 8) return Two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return std::to_string(hours) + "h";
  const std::int64_t days = hours / 24;
  if (hours < 24 * 8) return Two(days, 'd', hours % 24, 'h');
  if (hours < 24 * 365 * 2) return std::to_string(days) + "d";
  if (hours < 24 * 365 * 8) return Two(days / 365, 'y', days % 365, 'd');
  return std::to_string(days / 365) + "y";
}

std::string Age(const base::Clock& clock, Time time) {
  if (dynamic_cast<const AgeTemplate*>(&clock) != nullptr) return Mark(time);
  return AgeNow(SinceEpoch(clock), time);
}

AgeTemplate::SystemTime AgeTemplate::Now() const {
  read_ = true;
  return clock_.Now();
}

AgeTemplate::SteadyTime AgeTemplate::Monotonic() const {
  read_ = true;
  return clock_.Monotonic();
}

void AgeTemplate::Fill(std::string_view text, const base::Clock& clock, std::string& out) {
  const std::string& secret = Secret();
  std::size_t at = 0;
  for (;;) {
    const std::size_t mark = text.find(secret, at);
    if (mark == std::string_view::npos) break;
    out += text.substr(at, mark - at);
    at = mark + secret.size();
    const Time time{static_cast<std::int64_t>(FromHex(text.substr(at, kSecondsDigits))),
                    static_cast<std::int32_t>(FromHex(text.substr(at + kSecondsDigits, kNanosDigits)))};
    const std::string age = AgeNow(SinceEpoch(clock), time);
    out += age == "<invalid>" ? "\\u003cinvalid\\u003e" : age;
    at += kSecondsDigits + kNanosDigits;
  }
  out += text.substr(at);
}

}  // namespace keelson::object
