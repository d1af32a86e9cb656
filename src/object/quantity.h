// A resource quantity ("500m", "1Gi", "12e6"): a decimal number with the notation it was written in, as apimachinery's
// resource.Quantity. Kubernetes keeps quantities in a canonical text; Quantity::Parse(text)->ToString() is that text.
// Values are exact to the nano. Numbers of more than 38 significant digits are refused (upstream computes on without
// bound). Thread safety: a value type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/outcome.h"

namespace keelson::object {

class Quantity {
 public:
  enum class Format : std::uint8_t { kDecimalSI, kBinarySI, kDecimalExponent };

  Quantity() = default;  // 0, decimal SI
  explicit Quantity(std::int64_t value, Format format = Format::kDecimalSI) : number_(value), format_(format) {}
  // The error is upstream's text: "quantities must match the regular expression '...'", "unable to parse ...".
  static Outcome<Quantity, std::string_view> Parse(std::string_view text);
  // The canonical text of `text`, without building a string where it is canonical already (the common case).
  // The result points into `text` or into `buffer`, which must hold kTextMax bytes.
  static constexpr std::size_t kTextMax = 64;
  static Outcome<std::string_view, std::string_view> Canonical(std::string_view text, char* buffer);

  std::string ToString() const;
  Format format() const { return format_; }
  bool IsZero() const { return number_ == 0; }
  int Sign() const { return number_ == 0 ? 0 : number_ < 0 ? -1 : 1; }
  // Rounded up (away from zero), as upstream; a value that does not fit saturates.
  std::int64_t Value() const { return ScaledValue(0); }
  std::int64_t MilliValue() const { return ScaledValue(-3); }
  std::int64_t ScaledValue(std::int32_t scale) const;  // in units of 10^scale
  double AsDouble() const;
  bool IsInteger() const;  // no fraction
  // Upstream's AsInt64: nothing where it keeps the number as a decimal (1.5Gi, 20 digits) or with a negative scale
  // (1000m), even if the value is whole.
  std::optional<std::int64_t> AsInt64() const;

  void Add(const Quantity& other);  // keeps this one's format unless it is zero
  void Sub(const Quantity& other);
  void Negate();
  void RoundUp(std::int32_t scale);  // to a multiple of 10^scale, away from zero
  int Compare(const Quantity& other) const;
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.Compare(b) == 0; }

 private:
  using Number = __int128;
  static Outcome<Quantity, std::string_view> ParseInto(std::string_view text, bool* keep_text);
  std::string_view Write(char* buffer) const;

  Number number_ = 0;  // the value is number_ * 10^scale_
  std::int32_t scale_ = 0;
  Format format_ = Format::kDecimalSI;
  bool decimal_ = false;  // upstream would hold an inf.Dec, not an int64Amount
  std::string text_;      // upstream keeps the text it parsed where it looks canonical ("1.500" too)
};

}  // namespace keelson::object
