// Feature gates: the 242 gates of kube-apiserver v1.36 with stage, default and lock, and their current values.
// Thread safety: const members from any thread; Set() at start only.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"

namespace keelson::app {

enum class Stage : std::uint8_t { kAlpha, kBeta, kGA, kDeprecated };
std::string_view ToString(Stage stage);  // "ALPHA", "BETA", "", "DEPRECATED"; as in kubernetes_feature_enabled

// Effect of a gate in this server. kNone: no effect in an API server; accepted because upstream accepts it
// (kubelet, scheduler, clients). kUnbuilt: this server lacks its upstream effect, so only the default is
// accepted.
enum class Effect : std::uint8_t { kNone, kBuilt, kUnbuilt };

struct FeatureGate {
  std::string_view name;
  Stage stage;
  bool enabled_by_default;
  bool locked;
  Effect effect;
};

std::span<const FeatureGate> KnownFeatureGates();  // by name

class FeatureGates {
 public:
  FeatureGates();

  // REQUIRES: `name` is known.
  bool Enabled(std::string_view name) const;

  struct SetResult {
    std::vector<std::string> warnings;  // "Setting GA feature gate X=true. It will be removed in a future release."
    std::vector<std::string> unbuilt;   // "--feature-gates: X=true is not built yet"
  };
  // --feature-gates: component → "Name=bool" items. Upstream's errors: unrecognized feature gate: X
  Outcome<SetResult, std::string> Set(const std::map<std::string, std::vector<std::string>>& flag);
  std::vector<std::string> Validate() const;  // A is enabled, but depends on features that are disabled: [B]

  // "kube:X=true|false (BETA - default=true)" lines for --help: alpha and beta gates.
  static std::string KnownFeaturesText();

 private:
  std::vector<bool> enabled_;  // by index in KnownFeatureGates()
};

}  // namespace keelson::app
