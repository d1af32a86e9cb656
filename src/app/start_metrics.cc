#include "app/start_metrics.h"

#include <string>
#include <string_view>
#include <vector>

#include "app/version.h"
#include "base/strings.h"
#include "telemetry/process_metrics.h"

namespace keelson::app {
namespace {

using telemetry::MetricsRegistry;
using telemetry::Stability;

// "'a,b'" or "a,b": quotes are what a shell left over.
std::vector<std::string> AllowedValues(std::string_view text) {
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') text = text.substr(1, text.size() - 2);
  std::vector<std::string> values;
  for (const std::string_view value : base::Split(text, ',')) values.emplace_back(value);
  return values;
}

void ApplyOptions(MetricsRegistry& registry, const MetricsOptions& options) {
  for (const std::string& name : options.disabled_metrics) registry.Disable(name);
  for (const auto& [key, values] : options.allow_list_mapping) {
    const std::size_t comma = key.find(',');
    registry.AllowLabelValues(key.substr(0, comma), key.substr(comma + 1), AllowedValues(values));
  }
}

}  // namespace

void RegisterStartMetrics(MetricsRegistry& registry, const CompletedOptions& completed) {
  ApplyOptions(registry, completed.options.metrics);
  telemetry::AddProcessMetrics(registry);

  const VersionInfo info = GetVersionInfo(completed.reported_version);
  registry
      .Gauges({.name = "kubernetes_build_info",
               .help = "Always 1; the labels have the version and the build.",
               .stability = Stability::kBeta,
               .labels = {"major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version",
                          "compiler", "platform"}})
      .With({info.major, info.minor, info.git_version, info.git_commit, info.git_tree_state, info.build_date,
             info.go_version, info.compiler, info.platform})
      .Set(1);
  registry
      .Gauges({.name = "version_info",
               .help = "Always 1; the labels have the version of the binary, the one it emulates and the oldest it is "
                       "compatible with.",
               .stability = Stability::kAlpha,
               .labels = {"binary", "component", "emulation", "min_compat"}})
      .With({info.major + "." + info.minor, "kube", info.emulation_major + "." + info.emulation_minor,
             info.min_compatibility_major + "." + info.min_compatibility_minor})
      .Set(1);
  auto& enabled = registry.Gauges({.name = "kubernetes_feature_enabled",
                                   .help = "1 for each feature gate that is on, 0 for each that is off.",
                                   .stability = Stability::kBeta,
                                   .labels = {"name", "stage"}});
  for (const FeatureGate& gate : KnownFeatureGates()) {
    enabled.With({gate.name, ToString(gate.stage)}).Set(completed.features.Enabled(gate.name) ? 1 : 0);
  }

  auto& disabled = registry.NewCounter(
      {.name = "disabled_metrics_total", .help = "The count of disabled metrics.", .stability = Stability::kBeta});
  disabled.Add(completed.options.metrics.disabled_metrics.size());
  registry.NewCounter(
      {.name = "hidden_metrics_total", .help = "The count of hidden metrics.", .stability = Stability::kBeta});
  const telemetry::MetricOptions registered{.name = "registered_metrics_total",
                                            .help = "The count of registered metrics by stability.",
                                            .stability = Stability::kBeta,
                                            .labels = {"deprecated_version", "stability_level"}};
  registry.AddCollector([&registry, registered](telemetry::Exposition& out) {
    for (const Stability level : {Stability::kAlpha, Stability::kBeta, Stability::kStable}) {
      double count = 0;
      for (const telemetry::Family* const family : registry.Families()) count += family->stability() == level;
      out.Write(registered, telemetry::MetricType::kCounter, {"", ToString(level)}, count);
    }
  });
}

}  // namespace keelson::app
