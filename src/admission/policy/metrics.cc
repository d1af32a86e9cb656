#include "admission/policy/metrics.h"

#include <vector>

namespace keelson::admission {
namespace {

using telemetry::Stability;

const std::vector<double> kBuckets = {0.0000005, 0.001, 0.01, 0.1, 1.0};

// Upstream classifies errors by the prefix of their text; a plain denial is an invalid_error, too.
std::string_view ErrorType(std::string_view error) {
  if (error.empty()) return "no_error";
  if (error.starts_with("compilation")) return "compile_error";
  if (error.starts_with("validation failed due to running out of cost budget")) return "out_of_budget";
  return "invalid_error";
}

double Seconds(std::chrono::nanoseconds took) { return std::chrono::duration<double>(took).count(); }

}  // namespace

PolicyMetrics::PolicyMetrics(telemetry::MetricsRegistry& registry)
    : validations_(registry.Counters({.name = "apiserver_validating_admission_policy_check_total",
                                      .help = "Validation admission policy check total, labeled by policy and further "
                                              "identified by binding and enforcement action taken.",
                                      .stability = Stability::kBeta,
                                      .labels = {"policy", "policy_binding", "error_type", "enforcement_action"}})),
      validation_seconds_(registry.Histograms(
          {.name = "apiserver_validating_admission_policy_check_duration_seconds",
           .help = "Validation admission latency for individual validation expressions in seconds, labeled by policy "
                   "and further including binding and enforcement action taken.",
           .stability = Stability::kBeta,
           .labels = {"policy", "policy_binding", "error_type", "enforcement_action"},
           .buckets = kBuckets})),
      mutations_(registry.Counters({.name = "apiserver_mutating_admission_policy_check_total",
                                    .help = "Mutation admission policy check total, labeled by policy and further "
                                            "identified by binding.",
                                    .stability = Stability::kAlpha,
                                    .labels = {"policy", "policy_binding", "error_type"}})),
      mutation_seconds_(registry.Histograms({.name = "apiserver_mutating_admission_policy_check_duration_seconds",
                                             .help = "Mutation admission latency for individual mutation expressions "
                                                     "in seconds, labeled by policy and binding.",
                                             .stability = Stability::kAlpha,
                                             .labels = {"policy", "policy_binding", "error_type"},
                                             .buckets = kBuckets})) {}

void PolicyMetrics::Validated(std::string_view policy, std::string_view binding, std::string_view error,
                              std::string_view action, std::chrono::nanoseconds took) {
  validations_.With({policy, binding, ErrorType(error), action}).Inc();
  validation_seconds_.With({policy, binding, ErrorType(error), action}).Observe(Seconds(took));
}

void PolicyMetrics::Mutated(std::string_view policy, std::string_view binding, std::string_view error,
                            std::chrono::nanoseconds took) {
  mutations_.With({policy, binding, ErrorType(error)}).Inc();
  mutation_seconds_.With({policy, binding, ErrorType(error)}).Observe(Seconds(took));
}

}  // namespace keelson::admission
