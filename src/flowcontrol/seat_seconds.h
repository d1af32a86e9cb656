// Work in seat-seconds as a fixed-point number (1e-8): exact sums, so that virtual time never drifts.
#pragma once

#include <chrono>
#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>

namespace keelson::flowcontrol {

class SeatSeconds {
 public:
  constexpr SeatSeconds() = default;
  static constexpr SeatSeconds Max() { return SeatSeconds(std::numeric_limits<std::uint64_t>::max()); }
  static constexpr SeatSeconds FromRaw(std::uint64_t raw) { return SeatSeconds(raw); }
  // Meant for increments of work; a negative duration gives the two's complement, so that += goes back.
  static SeatSeconds Of(double seats, std::chrono::nanoseconds duration) {
    const double units = std::round(seats * static_cast<double>(duration.count()) / (1e9 / kScale));
    return SeatSeconds(static_cast<std::uint64_t>(static_cast<std::int64_t>(units)));
  }

  std::uint64_t raw() const { return units_; }
  double ToDouble() const { return static_cast<double>(units_) / kScale; }
  std::chrono::nanoseconds DurationPerSeat(double seats) const {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(units_) / seats * (1e9 / kScale)));
  }
  // As Go prints it: "0.00300000ss".
  std::string ToString() const;

  SeatSeconds& operator+=(SeatSeconds other) {
    units_ += other.units_;
    return *this;
  }
  SeatSeconds& operator-=(SeatSeconds other) {
    units_ -= other.units_;
    return *this;
  }
  friend SeatSeconds operator+(SeatSeconds a, SeatSeconds b) { return a += b; }
  friend SeatSeconds operator-(SeatSeconds a, SeatSeconds b) { return a -= b; }
  friend auto operator<=>(SeatSeconds, SeatSeconds) = default;

 private:
  static constexpr double kScale = 1e8;
  explicit constexpr SeatSeconds(std::uint64_t units) : units_(units) {}
  std::uint64_t units_ = 0;
};

}  // namespace keelson::flowcontrol
