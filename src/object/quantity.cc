#include "object/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

namespace keelson::object {
namespace {

using Number = __int128;

constexpr std::string_view kFormatWrong =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
constexpr std::string_view kNumeric = "unable to parse numeric part of quantity";
constexpr std::string_view kSuffix = "unable to parse quantity's suffix";

constexpr int kNano = -9;
constexpr std::size_t kDigitsMax = 38;
constexpr std::size_t kInt64Digits = 18;  // so many digits always fit
constexpr std::int64_t kBinaryMax = INT64_MAX;
constexpr std::int32_t kWholeScaleMax = 38;  // 10^38 is the largest power in 128 bits

struct Suffix {
  std::string_view text;
  std::int32_t base;
  std::int32_t exponent;
};
constexpr Suffix kDecimal[] = {{"n", 10, -9}, {"u", 10, -6}, {"m", 10, -3}, {"", 10, 0},   {"k", 10, 3},
                               {"M", 10, 6},  {"G", 10, 9},  {"T", 10, 12}, {"P", 10, 15}, {"E", 10, 18}};
constexpr Suffix kBinary[] = {{"Ki", 2, 10}, {"Mi", 2, 20}, {"Gi", 2, 30}, {"Ti", 2, 40}, {"Pi", 2, 50}, {"Ei", 2, 60}};

// The pieces of a quantity's text, cut as upstream's scanner cuts them.
struct Pieces {
  bool positive = true;
  std::string_view number;       // digits before the point, leading zeros off
  std::string_view denominator;  // digits after it
  std::string_view suffix;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool Cut(std::string_view text, Pieces& out) {
  std::size_t at = 0;
  if (text[0] == '-' || text[0] == '+') {
    out.positive = text[0] == '+';
    at = 1;
  }
  while (at < text.size() && text[at] == '0') ++at;
  std::size_t start = at;
  while (at < text.size() && IsDigit(text[at])) ++at;
  out.number = text.substr(start, at - start);
  if (at < text.size() && text[at] == '.') {
    start = ++at;
    while (at < text.size() && IsDigit(text[at])) ++at;
    out.denominator = text.substr(start, at - start);
  }
  start = at;
  while (at < text.size() && std::string_view("eEinumkKMGTP").find(text[at]) != std::string_view::npos) ++at;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  while (at < text.size() && IsDigit(text[at])) ++at;
  out.suffix = text.substr(start);
  return at == text.size();
}

bool Interpret(std::string_view suffix, std::int32_t& base, std::int32_t& exponent, Quantity::Format& format) {
  for (const Suffix& known : kDecimal) {
    if (known.text != suffix) continue;
    base = 10, exponent = known.exponent, format = Quantity::Format::kDecimalSI;
    return true;
  }
  for (const Suffix& known : kBinary) {
    if (known.text != suffix) continue;
    base = 2, exponent = known.exponent, format = Quantity::Format::kBinarySI;
    return true;
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return false;
  std::string_view digits = suffix.substr(1);
  if (digits[0] == '+') digits.remove_prefix(1);
  if (digits.empty() || digits[0] == '+') return false;
  std::int64_t parsed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
  if (error != std::errc() || end != digits.data() + digits.size()) return false;
  base = 10, exponent = static_cast<std::int32_t>(parsed), format = Quantity::Format::kDecimalExponent;
  return true;
}

Number Power10(std::int32_t exponent) {
  Number power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

// number / 10^places, away from zero.
Number DivideUp(Number number, std::int64_t places) {
  if (number == 0) return 0;
  if (places > static_cast<std::int64_t>(kDigitsMax)) return number > 0 ? 1 : -1;
  const Number divisor = Power10(static_cast<std::int32_t>(places));
  const Number quotient = number / divisor;
  if (number % divisor == 0) return quotient;
  return number > 0 ? quotient + 1 : quotient - 1;
}

std::size_t WriteNumber(Number number, char* out) {
  char reversed[48];
  std::size_t size = 0;
  const bool negative = number < 0;
  auto rest = negative ? -static_cast<unsigned __int128>(number) : static_cast<unsigned __int128>(number);
  do {
    reversed[size++] = static_cast<char>('0' + static_cast<int>(rest % 10));
    rest /= 10;
  } while (rest != 0);
  if (negative) reversed[size++] = '-';
  std::reverse_copy(reversed, reversed + size, out);
  return size;
}

}  // namespace

Outcome<Quantity, std::string_view> Quantity::ParseInto(std::string_view text, bool* keep_text) {
  *keep_text = false;
  if (text.empty()) return kFormatWrong;
  Pieces pieces;
  if (!Cut(text, pieces)) return kFormatWrong;
  Quantity result;
  std::int32_t base = 10, exponent = 0;
  if (!Interpret(pieces.suffix, base, exponent, result.format_)) return kSuffix;

  std::string_view number = pieces.number;
  if (number.size() + pieces.denominator.size() > kDigitsMax) return kNumeric;
  std::array<char, kDigitsMax> digits;
  std::copy(pieces.denominator.begin(), pieces.denominator.end(),
            std::copy(number.begin(), number.end(), digits.begin()));
  const std::string_view shifted(digits.data(), number.size() + pieces.denominator.size());
  Number value = 0;
  for (const char c : shifted) value = value * 10 + (c - '0');

  const auto places = static_cast<std::int32_t>(pieces.denominator.size());
  const bool decimal = result.format_ != Format::kBinarySI;
  const std::int64_t scale = static_cast<std::int64_t>(decimal ? exponent : 0) - places;
  if (scale > INT32_MAX || scale < INT32_MIN) return kNumeric;
  // Upstream's 64-bit path keeps a text that looks canonical.
  const auto digit_count = static_cast<int>(std::max<std::size_t>(number.size(), 1) + pieces.denominator.size());
  const bool fast =
      decimal ? digit_count <= static_cast<int>(kInt64Digits) && scale >= kNano
              : places == 0 && 15 - digit_count - static_cast<int>(static_cast<float>(exponent) * 3 / 10) - 1 >= 0;
  if (fast) {
    result.number_ = decimal ? value : value << exponent;
    if (!pieces.positive) result.number_ = -result.number_;
    result.scale_ = static_cast<std::int32_t>(scale);
    *keep_text = text == "0" || (decimal ? scale % 3 == 0 && !shifted.ends_with("000") && !number.empty()
                                         : exponent % 10 == 0 && (static_cast<std::int64_t>(value) & 7) != 0);
    return result;
  }
  result.decimal_ = true;
  result.number_ = value;
  result.scale_ = static_cast<std::int32_t>(scale);
  if (!decimal) {
    // Twenty digits times 2^60 still fit; what is larger is above the cap anyway.
    if (number.size() > 20 || value > (static_cast<Number>(1) << 66)) {
      result.number_ = kBinaryMax, result.scale_ = 0;
    } else {
      result.number_ = value << exponent;
    }
  }
  if (result.scale_ < kNano) {
    result.number_ = DivideUp(result.number_, static_cast<std::int64_t>(kNano) - result.scale_);
    result.scale_ = kNano;
  }
  if (!decimal) {
    if (result.Compare(Quantity(kBinaryMax)) > 0) result.number_ = kBinaryMax, result.scale_ = 0;
    if (result.number_ > 0 && result.Compare(Quantity(1)) < 0) result.format_ = Format::kDecimalSI;
  }
  if (!pieces.positive) result.number_ = -result.number_;
  return result;
}

Outcome<Quantity, std::string_view> Quantity::Parse(std::string_view text) {
  bool keep = false;
  auto parsed = ParseInto(text, &keep);
  if (parsed.ok() && keep) parsed->text_ = text;
  return parsed;
}

Outcome<std::string_view, std::string_view> Quantity::Canonical(std::string_view text, char* buffer) {
  bool keep = false;
  auto parsed = ParseInto(text, &keep);
  if (!parsed.ok()) return Outcome<std::string_view, std::string_view>(std::unexpect, parsed.error());
  if (keep) return Outcome<std::string_view, std::string_view>(std::in_place, text);
  return Outcome<std::string_view, std::string_view>(std::in_place, parsed->Write(buffer));
}

std::string_view Quantity::Write(char* buffer) const {
  if (number_ == 0) return "0";
  Format format = format_;
  if (format == Format::kBinarySI && ((Compare(Quantity(-1024)) > 0 && Compare(Quantity(1024)) < 0) || !IsInteger())) {
    format = Format::kDecimalSI;  // Small or fractional: 1024 has no part in it.
  }
  Number number = number_;
  std::string_view suffix;
  std::size_t size = 0;
  Number whole = number;
  if (format == Format::kBinarySI && scale_ < 0) whole = number / Power10(-scale_);
  if (format == Format::kBinarySI && scale_ > 0 &&
      (scale_ > kWholeScaleMax || __builtin_mul_overflow(number, Power10(scale_), &whole))) {
    format = Format::kDecimalSI;  // beyond what 128 bits hold, only sums get there
  }
  if (format == Format::kBinarySI) {
    std::size_t times = 0;
    while (times < std::size(kBinary) && whole % 1024 == 0) whole /= 1024, ++times;
    if (times > 0) suffix = kBinary[times - 1].text;
    size = WriteNumber(whole, buffer);
  } else {
    std::int32_t exponent = scale_;
    while (number % 10 == 0) number /= 10, ++exponent;
    size = WriteNumber(number, buffer);
    for (; exponent % 3 != 0; --exponent) buffer[size++] = '0';  // as text: the number may have 38 digits already
    if (format == Format::kDecimalSI) {
      for (const Suffix& known : kDecimal) {
        if (known.exponent == exponent) suffix = known.text;
      }
    } else if (exponent != 0) {
      buffer[size++] = 'e';
      const auto [end, error] = std::to_chars(buffer + size, buffer + kTextMax, exponent);
      if (error == std::errc()) size = static_cast<std::size_t>(end - buffer);
    }
  }
  if (!suffix.empty()) std::memcpy(buffer + size, suffix.data(), suffix.size());
  return {buffer, size + suffix.size()};
}

std::string Quantity::ToString() const {
  if (!text_.empty()) return text_;
  char buffer[kTextMax];
  return std::string(Write(buffer));
}

bool Quantity::IsInteger() const {
  if (scale_ >= 0 || number_ == 0) return true;
  if (-scale_ > static_cast<std::int32_t>(kDigitsMax)) return false;
  return number_ % Power10(-scale_) == 0;
}

std::optional<std::int64_t> Quantity::AsInt64() const {
  if (decimal_ || scale_ < 0) return std::nullopt;
  Number value = number_;
  for (std::int32_t i = 0; i < scale_; ++i) {
    value *= 10;
    if (value > INT64_MAX || value < INT64_MIN) return std::nullopt;
    if (value == 0) break;
  }
  return static_cast<std::int64_t>(value);
}

std::int64_t Quantity::ScaledValue(std::int32_t scale) const {
  const std::int64_t shift = static_cast<std::int64_t>(scale_) - scale;
  Number value = number_;
  if (shift < 0) value = DivideUp(value, -shift);
  for (std::int64_t i = 0; i < shift && value != 0 && value <= INT64_MAX && value >= INT64_MIN; ++i) value *= 10;
  return static_cast<std::int64_t>(std::clamp<Number>(value, INT64_MIN, INT64_MAX));
}

double Quantity::AsDouble() const { return static_cast<double>(number_) * std::pow(10.0, scale_); }

int Quantity::Compare(const Quantity& other) const {
  if (Sign() != other.Sign()) return Sign() < other.Sign() ? -1 : 1;
  if (number_ == 0) return 0;
  Number a = number_, b = other.number_;
  std::int64_t a_scale = scale_, b_scale = other.scale_;
  // Brings the larger scale down; once a number has outgrown any 38 digits the order is known.
  constexpr Number kLimit = static_cast<Number>(1) << 123;
  while (a_scale > b_scale) {
    if (a > kLimit || a < -kLimit) return a > 0 ? 1 : -1;
    a *= 10, --a_scale;
  }
  while (b_scale > a_scale) {
    if (b > kLimit || b < -kLimit) return b > 0 ? -1 : 1;
    b *= 10, --b_scale;
  }
  return a == b ? 0 : a < b ? -1 : 1;
}

void Quantity::Add(const Quantity& other) {
  text_.clear();
  if (number_ == 0) {  // zeros have scales, too: 0e2000000000
    number_ = other.number_, scale_ = other.scale_, format_ = other.format_;
    return;
  }
  if (other.number_ == 0) return;
  Number b = other.number_;
  std::int64_t b_scale = other.scale_;
  std::int64_t scale = scale_;
  constexpr Number kLimit = static_cast<Number>(1) << 122;
  while (scale > b_scale && number_ < kLimit && number_ > -kLimit) number_ *= 10, --scale;
  while (b_scale > scale && b < kLimit && b > -kLimit) b *= 10, --b_scale;
  // Numbers without a common scale differ by more than 36 digits: the smaller one is lost in the larger one's
  // last place.
  if (scale > b_scale) b = DivideUp(b, scale - b_scale);
  if (b_scale > scale) number_ = DivideUp(number_, b_scale - scale), scale = b_scale;
  Number sum = 0;
  while (__builtin_add_overflow(number_, b, &sum)) {  // a digit less of both, once
    number_ = DivideUp(number_, 1), b = DivideUp(b, 1), ++scale;
  }
  number_ = sum;
  scale_ = static_cast<std::int32_t>(std::min<std::int64_t>(scale, INT32_MAX));
  decimal_ = decimal_ || other.decimal_ || number_ > INT64_MAX || number_ < INT64_MIN;
}

void Quantity::Negate() {
  text_.clear();
  number_ = -number_;
}

void Quantity::Sub(const Quantity& other) {
  Quantity negative = other;
  negative.Negate();
  Add(negative);
}

void Quantity::RoundUp(std::int32_t scale) {
  if (scale_ >= scale) return;
  text_.clear();
  number_ = DivideUp(number_, static_cast<std::int64_t>(scale) - scale_);
  scale_ = scale;
}

}  // namespace keelson::object
