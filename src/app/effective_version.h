// --emulated-version and --min-compatibility-version: upstream's syntax and ranges. Only the defaults have an effect
// that is built; other versions in the range are refused by name. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/outcome.h"

namespace keelson::app {

struct MinorVersion {
  std::uint64_t major = 0, minor = 0;
  std::string ToString() const { return std::to_string(major) + "." + std::to_string(minor); }
  friend auto operator<=>(const MinorVersion&, const MinorVersion&) = default;
};

inline constexpr MinorVersion kBinaryVersion{1, 36};
inline constexpr MinorVersion kVersionFloor{1, 33};  // three minor versions before the binary's

struct EffectiveVersion {
  MinorVersion emulation = kBinaryVersion;
  MinorVersion min_compatibility{1, 35};  // one before the emulated version, not below the floor

  // The flags' items: "1.36" or "kube=1.36". The error is that of upstream's ComponentGlobalsRegistry.Set().
  static Outcome<EffectiveVersion, std::string> FromFlags(const std::vector<std::string>& emulated,
                                                          const std::vector<std::string>& min_compatibility);
  std::vector<std::string> Validate() const;  // ranges
  // "--emulated-version: version emulation is not built yet"
  std::vector<std::string> Unbuilt() const;
};

}  // namespace keelson::app
