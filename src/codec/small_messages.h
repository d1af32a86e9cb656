// Messages of a few scalars (times, durations, quantities, ...), read whole.
#pragma once

#include <cstdint>
#include <string_view>

#include "codec/wire.h"
#include "object/time.h"

namespace keelson::codec {

inline constexpr const char* kEOF = "unexpected EOF";

// The last string or bytes field `wanted`; `out` stays as it is where there is none. False where the bytes make no
// sense.
inline bool ReadText(std::string_view message, std::uint32_t wanted, std::string_view& out) {
  for (WireReader in(message); !in.AtEnd();) {
    std::uint32_t number = 0;
    WireType wire{};
    if (!in.Tag(number, wire)) return false;
    if (number == wanted && wire == WireType::kBytes ? !in.Bytes(out) : !in.Skip(wire)) return false;
  }
  return true;
}

// The varint fields 1 to 3, by number.
inline bool ReadVarints(std::string_view message, std::uint64_t (&out)[4]) {
  for (WireReader in(message); !in.AtEnd();) {
    std::uint32_t number = 0;
    WireType wire{};
    if (!in.Tag(number, wire)) return false;
    if (number < 4 && wire == WireType::kVarint ? !in.Varint(out[number]) : !in.Skip(wire)) return false;
  }
  return true;
}

// Reads a Time or a MicroTime; returns the error text, or nullptr. The zero time is valid.
inline const char* ReadTime(std::string_view message, bool micro, object::Time& out) {
  std::uint64_t parts[4] = {};
  if (!ReadVarints(message, parts)) return kEOF;
  out = {static_cast<std::int64_t>(parts[1]), 0};
  if (micro) {
    const auto nanos = static_cast<std::int32_t>(parts[2]);
    if (nanos < 0 || nanos > 999'999'999) return "proto: nanos out of range";
    out.nanos = nanos / 1000 * 1000;
  }
  if (out.IsZero()) return nullptr;
  // A year of more than four digits does not read back.
  constexpr std::int64_t kSecondsMin = -62167219200, kSecondsMax = 253402300799;
  const bool told = out.seconds >= kSecondsMin && out.seconds <= kSecondsMax;
  return told ? nullptr : "Time.MarshalJSON: year outside of range [0,9999]";
}

}  // namespace keelson::codec
