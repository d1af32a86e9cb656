#include "endpoints/admission_metrics.h"

#include <memory>

namespace keelson::endpoints {
namespace {
const std::vector<double> kBuckets = {0.005, 0.025, 0.1, 0.5, 1.0, 2.5};
}

AdmissionMetrics::AdmissionMetrics(telemetry::MetricsRegistry& registry)
    : steps_(registry.Histograms({.name = "apiserver_admission_step_admission_duration_seconds",
                                  .help = "Admission sub-step latency histogram in seconds, broken out for each "
                                          "operation and API resource and step type (validate or admit).",
                                  .stability = telemetry::Stability::kStable,
                                  .labels = {"type", "operation", "rejected"},
                                  .buckets = kBuckets})),
      controllers_(registry.Histograms({.name = "apiserver_admission_controller_admission_duration_seconds",
                                        .help = "Admission controller latency histogram in seconds, identified by name "
                                                "and broken out for each operation and API resource and type "
                                                "(validate or admit).",
                                        .stability = telemetry::Stability::kStable,
                                        .labels = {"name", "type", "operation", "rejected"},
                                        .buckets = kBuckets})) {}

AdmissionMetrics::~AdmissionMetrics() {
  for (const auto& known : known_) delete known.load(std::memory_order_relaxed);
}

telemetry::Histogram& AdmissionMetrics::Find(const admission::Observation& observation) {
  const std::string_view type = observation.validating ? "validate" : "admit";
  const std::string_view operation = admission::ToString(observation.operation);
  const std::string_view rejected = observation.rejected ? "true" : "false";
  if (observation.plugin.empty()) return steps_.With({type, operation, rejected});
  return controllers_.With({observation.plugin, type, operation, rejected});
}

void AdmissionMetrics::Observe(const admission::Observation& observation) {
  const std::chrono::duration<double> seconds = observation.took;
  const std::string_view plugin = observation.plugin;
  const std::size_t kind = static_cast<std::size_t>(observation.operation) * 4 + (observation.validating ? 2 : 0) +
                           (observation.rejected ? 1 : 0);
  // Names of plugins differ in their length and ends; a name's address would do as well, but need not stay its own.
  std::size_t hash = kind + 16 * plugin.size();
  if (!plugin.empty()) {
    hash += 16 * 31 * static_cast<unsigned char>(plugin.front()) +
            16 * 7 * static_cast<unsigned char>(plugin[plugin.size() / 2]);
  }
  std::atomic<const Known*>& slot = known_[hash % kKnownMax];
  const Known* known = slot.load(std::memory_order_acquire);
  if (known != nullptr && known->kind == kind && known->plugin == plugin)
    return known->series->Observe(seconds.count());
  telemetry::Histogram& series = Find(observation);
  if (known == nullptr) {
    auto fresh = std::make_unique<const Known>(std::string(plugin), kind, &series);
    if (slot.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) fresh.release();
  }
  series.Observe(seconds.count());
}

}  // namespace keelson::endpoints
