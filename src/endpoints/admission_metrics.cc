#include "endpoints/admission_metrics.h"

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

void AdmissionMetrics::Observe(const admission::Observation& observation) {
  const std::string_view type = observation.validating ? "validate" : "admit";
  const std::string_view operation = admission::ToString(observation.operation);
  const std::string_view rejected = observation.rejected ? "true" : "false";
  const std::chrono::duration<double> seconds = observation.took;
  if (observation.plugin.empty()) {
    steps_.With({type, operation, rejected}).Observe(seconds.count());
  } else {
    controllers_.With({observation.plugin, type, operation, rejected}).Observe(seconds.count());
  }
}

}  // namespace keelson::endpoints
