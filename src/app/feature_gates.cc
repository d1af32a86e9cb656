#include "app/feature_gates.h"

#include <algorithm>
#include <optional>

#include "app/flag_values.h"
#include "base/check.h"
#include "base/strings.h"

namespace keelson::app {
namespace {

struct Dependency {
  std::string_view feature;
  std::string_view needs;
};

constexpr Dependency kDependencies[] = {
    {"ClusterTrustBundleProjection", "ClusterTrustBundle"},
    {"DRAAdminAccess", "DynamicResourceAllocation"},
    {"DRAConsumableCapacity", "DynamicResourceAllocation"},
    {"DRADeviceBindingConditions", "DynamicResourceAllocation"},
    {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"},
    {"DRADeviceTaintRules", "DRADeviceTaints"},
    {"DRADeviceTaintRules", "DynamicResourceAllocation"},
    {"DRADeviceTaints", "DynamicResourceAllocation"},
    {"DRAExtendedResource", "DynamicResourceAllocation"},
    {"DRAListTypeAttributes", "DynamicResourceAllocation"},
    {"DRANodeAllocatableResources", "DynamicResourceAllocation"},
    {"DRAPartitionableDevices", "DynamicResourceAllocation"},
    {"DRAPrioritizedList", "DynamicResourceAllocation"},
    {"DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"},
    {"DRAResourceClaimGranularStatusAuthorization", "DynamicResourceAllocation"},
    {"DRAResourceClaimGranularStatusAuthorization", "DRAResourceClaimDeviceStatus"},
    {"DRAResourcePoolStatus", "DynamicResourceAllocation"},
    {"DRASchedulerFilterTimeout", "DynamicResourceAllocation"},
    {"DRAWorkloadResourceClaims", "DynamicResourceAllocation"},
    {"DRAWorkloadResourceClaims", "GenericWorkload"},
    {"DeclarativeValidationBeta", "DeclarativeValidation"},
    {"DeclarativeValidationTakeover", "DeclarativeValidation"},
    {"ExtendWebSocketsToKubelet", "NodeDeclaredFeatures"},
    {"GangScheduling", "GenericWorkload"},
    {"ImageVolumeWithDigest", "ImageVolume"},
    {"InPlacePodLevelResourcesVerticalScaling", "PodLevelResources"},
    {"InPlacePodLevelResourcesVerticalScaling", "NodeDeclaredFeatures"},
    {"InPlacePodVerticalScalingInitContainers", "NodeDeclaredFeatures"},
    {"MatchLabelKeysInPodTopologySpreadSelectorMerge", "MatchLabelKeysInPodTopologySpread"},
    {"PodCertificateRequest", "AuthorizeNodeWithSelectors"},
    {"ResourceHealthStatus", "DynamicResourceAllocation"},
    {"ResourceHealthStatusMessage", "ResourceHealthStatus"},
    {"RestartAllContainersOnContainerExits", "ContainerRestartRules"},
    {"RestartAllContainersOnContainerExits", "NodeDeclaredFeatures"},
    {"StorageVersionAPI", "APIServerIdentity"},
    {"StructuredAuthenticationConfigurationEgressSelector", "StructuredAuthenticationConfiguration"},
    {"StructuredAuthenticationConfigurationJWKSMetrics", "StructuredAuthenticationConfiguration"},
    {"TopologyAwareWorkloadScheduling", "GenericWorkload"},
    {"UnknownVersionInteroperabilityProxy", "APIServerIdentity"},
    {"UserNamespacesHostNetworkSupport", "NodeDeclaredFeatures"},
    {"WorkloadAwarePreemption", "GangScheduling"},
    {"WorkloadWithJob", "GenericWorkload"},
};

constexpr std::string_view kAllAlpha = "AllAlpha", kAllBeta = "AllBeta";

std::optional<std::size_t> IndexOf(std::string_view name) {
  const auto gates = KnownFeatureGates();
  const auto found = std::lower_bound(gates.begin(), gates.end(), name,
                                      [](const FeatureGate& gate, std::string_view n) { return gate.name < n; });
  if (found == gates.end() || found->name != name) return std::nullopt;
  return static_cast<std::size_t>(found - gates.begin());
}

std::string BoolText(bool value) { return value ? "true" : "false"; }

// "Name=bool" → name and value.
Outcome<std::pair<std::string, bool>, std::string> ParseItem(std::string_view item) {
  const std::size_t equals = item.find('=');
  const std::string name(base::Trim(item.substr(0, equals)));
  if (equals == std::string_view::npos) return "missing bool value for " + name;
  const std::string text(base::Trim(item.substr(equals + 1)));
  bool value = false;
  if (auto error = Bool(value)->Set(text)) return "invalid value of " + name + "=" + text + ", err: " + *error;
  return std::pair{name, value};
}

}  // namespace

std::string_view ToString(Stage stage) {
  switch (stage) {
    case Stage::kAlpha:
      return "ALPHA";
    case Stage::kBeta:
      return "BETA";
    case Stage::kGA:
      return "";
    case Stage::kDeprecated:
      return "DEPRECATED";
  }
  return "";
}

FeatureGates::FeatureGates() {
  for (const FeatureGate& gate : KnownFeatureGates()) enabled_.push_back(gate.enabled_by_default);
}

bool FeatureGates::Enabled(std::string_view name) const {
  const auto index = IndexOf(name);
  KS_CHECK(index);
  return enabled_[*index];
}

Outcome<FeatureGates::SetResult, std::string> FeatureGates::Set(
    const std::map<std::string, std::vector<std::string>>& flag) {
  for (const auto& [component, items] : flag) {
    if (component != "" && component != "kube") return "component not registered: " + component;
  }
  if (flag.contains("") && flag.contains("kube")) {
    return std::string("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use");
  }

  std::map<std::string, bool> wanted;
  for (const auto& [component, items] : flag) {
    for (const std::string& item : items) {
      KS_TRY(auto pair, ParseItem(item));
      wanted[pair.first] = pair.second;
    }
  }

  SetResult result;
  const auto gates = KnownFeatureGates();
  std::vector<bool> next = enabled_;
  for (const auto& [name, value] : wanted) {
    const auto index = IndexOf(name);
    if (!index) return "unrecognized feature gate: " + name;
    const FeatureGate& gate = gates[*index];
    if (gate.locked && value != gate.enabled_by_default) {
      return "cannot set feature gate " + name + " to " + BoolText(value) + ", feature is locked to " +
             BoolText(gate.enabled_by_default);
    }
    next[*index] = value;
    if (gate.stage == Stage::kGA || gate.stage == Stage::kDeprecated) {
      result.warnings.push_back(std::string("Setting ") + (gate.stage == Stage::kGA ? "GA" : "deprecated") +
                                " feature gate " + name + "=" + BoolText(value) +
                                ". It will be removed in a future release.");
    }
  }
  // AllAlpha and AllBeta reach every gate of their stage that is not named itself.
  for (const auto& [toggle, stage] : {std::pair{kAllAlpha, Stage::kAlpha}, std::pair{kAllBeta, Stage::kBeta}}) {
    const auto set = wanted.find(std::string(toggle));
    if (set == wanted.end()) continue;
    for (std::size_t i = 0; i < gates.size(); ++i) {
      if (gates[i].stage == stage && !gates[i].locked && !wanted.contains(std::string(gates[i].name)))
        next[i] = set->second;
    }
  }
  for (std::size_t i = 0; i < gates.size(); ++i) {
    if (gates[i].effect != Effect::kUnbuilt || next[i] == gates[i].enabled_by_default) continue;
    result.unbuilt.push_back("--feature-gates: " + std::string(gates[i].name) + "=" + BoolText(next[i]) +
                             " is not built yet");
  }
  enabled_ = std::move(next);
  return result;
}

std::vector<std::string> FeatureGates::Validate() const {
  std::vector<std::string> errors;
  std::map<std::string, std::vector<std::string>> missing;
  for (const Dependency& dependency : kDependencies) {
    if (Enabled(dependency.feature) && !Enabled(dependency.needs)) {
      missing[std::string(dependency.feature)].emplace_back(dependency.needs);
    }
  }
  for (const auto& [feature, needs] : missing) {
    errors.push_back(feature + " is enabled, but depends on features that are disabled: [" + base::Join(needs, " ") +
                     "]");
  }
  return errors;
}

std::string FeatureGates::KnownFeaturesText() {
  std::string text;
  for (const FeatureGate& gate : KnownFeatureGates()) {
    if (gate.stage != Stage::kAlpha && gate.stage != Stage::kBeta) continue;
    if (!text.empty()) text += '\n';
    text += "kube:" + std::string(gate.name) + "=true|false (" + std::string(ToString(gate.stage)) +
            " - default=" + BoolText(gate.enabled_by_default) + ")";
  }
  return text;
}

}  // namespace keelson::app
