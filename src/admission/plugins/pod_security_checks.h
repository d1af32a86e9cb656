// The Pod Security Standards: levels, policy versions and the checks of each. Internal to admission.
// Thread safety: pure functions over constant tables.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meta/status.h"
#include "object/value.h"

namespace keelson::admission::podsecurity {

enum class Level : std::uint8_t { kPrivileged, kBaseline, kRestricted };  // from lenient to strict
std::string_view ToString(Level level);

// The minor version of Kubernetes 1.x whose checks apply.
struct Version {
  static constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max();
  std::int64_t minor = kLatest;
  friend bool operator==(Version, Version) = default;
};

struct LevelVersion {
  Level level = Level::kPrivileged;
  Version version;
  std::string ToString() const;  // restricted:latest, baseline:v1.24
  friend bool operator==(const LevelVersion&, const LevelVersion&) = default;
};

struct Policy {
  LevelVersion enforce, audit, warn;
};

std::optional<Level> ParseLevel(std::string_view text);
std::optional<Version> ParseVersion(std::string_view text);  // "latest" or "v1.x"

// Parses the pod-security.kubernetes.io labels of a namespace (upstream's PolicyToEvaluate). A policy is returned even
// if `errors` is filled: enforce fails closed, audit and warn fail open.
Policy PolicyFromLabels(Value labels, const Policy& defaults, meta::FieldErrors& errors);

struct Violation {
  std::string reason;
  std::string detail;
};
// All violations of a pod (or pod template), in the order of the message.
std::vector<Violation> Evaluate(const LevelVersion& policy, Value metadata, Value spec);
std::string Details(const std::vector<Violation>& violations);  // "reason (detail), ..."
std::string Reasons(const std::vector<Violation>& violations);  // "reason, ..."

}  // namespace keelson::admission::podsecurity
