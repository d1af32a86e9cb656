#include "admission/webhook/metrics.h"

#include <algorithm>
#include <string>

namespace keelson::admission {
namespace {

using telemetry::Stability;

constexpr int kCodeMax = 600;  // keeps the number of series bounded

std::string CodeText(int code) { return std::to_string(std::min(code, kCodeMax)); }
double Seconds(std::chrono::nanoseconds took) { return std::chrono::duration<double>(took).count(); }

}  // namespace

WebhookMetrics::WebhookMetrics(telemetry::MetricsRegistry& registry)
    : durations_(registry.Histograms({.name = "apiserver_admission_webhook_admission_duration_seconds",
                                      .help = "Admission webhook latency histogram in seconds, identified by name and "
                                              "broken out for each operation and API resource and type (validate or "
                                              "admit).",
                                      .stability = Stability::kStable,
                                      .labels = {"name", "type", "operation", "rejected"},
                                      .buckets = {0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25}})),
      rejections_(registry.Counters(
          {.name = "apiserver_admission_webhook_rejection_count",
           .help = "Admission webhook rejection count, identified by name and broken out for each admission type "
                   "(validating or admit) and operation. Additional labels specify an error type "
                   "(calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and "
                   "optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code "
                   "(honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are "
                   "truncated to 600, to keep the metrics cardinality bounded.",
           .stability = Stability::kAlpha,
           .labels = {"name", "type", "operation", "error_type", "rejection_code"}})),
      fail_open_(registry.Counters({.name = "apiserver_admission_webhook_fail_open_count",
                                    .help = "Admission webhook fail open count, identified by name and broken out for "
                                            "each admission type (validating or admit).",
                                    .stability = Stability::kAlpha,
                                    .labels = {"name", "type"}})),
      requests_(registry.Counters(
          {.name = "apiserver_admission_webhook_request_total",
           .help = "Admission webhook request total, identified by name and broken out for each admission type "
                   "(validating or admit) and operation. Additional labels specify whether the request was rejected "
                   "or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics "
                   "cardinality bounded.",
           .stability = Stability::kAlpha,
           .labels = {"name", "type", "operation", "code", "rejected"}})),
      condition_errors_(registry.Counters(
          {.name = "apiserver_admission_match_condition_evaluation_errors_total",
           .help = "Admission match condition evaluation errors count, identified by name of resource containing the "
                   "match condition and broken out for each kind containing matchConditions (webhook or policy), "
                   "operation and admission type (validate or admit).",
           .stability = Stability::kAlpha,
           .labels = {"name", "kind", "type", "operation"}})),
      condition_exclusions_(registry.Counters(
          {.name = "apiserver_admission_match_condition_exclusions_total",
           .help = "Admission match condition evaluation exclusions count, identified by name of resource containing "
                   "the match condition and broken out for each kind containing matchConditions (webhook or policy), "
                   "operation and admission type (validate or admit).",
           .stability = Stability::kAlpha,
           .labels = {"name", "kind", "type", "operation"}})),
      condition_seconds_(registry.Histograms(
          {.name = "apiserver_admission_match_condition_evaluation_seconds",
           .help = "Admission match condition evaluation time in seconds, identified by name and broken out for each "
                   "kind containing matchConditions (webhook or policy), operation and type (validate or admit).",
           .stability = Stability::kAlpha,
           .labels = {"name", "kind", "type", "operation"},
           .buckets = {0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}})) {}

void WebhookMetrics::Called(std::string_view name, std::string_view type, Operation operation,
                            std::chrono::nanoseconds took, bool rejected, int code) {
  const std::string_view refused = rejected ? "true" : "false";
  requests_.With({name, type, ToString(operation), CodeText(code), refused}).Inc();
  durations_.With({name, type, ToString(operation), refused}).Observe(Seconds(took));
}

void WebhookMetrics::Rejected(std::string_view name, std::string_view type, Operation operation,
                              std::string_view error_type, int code) {
  rejections_.With({name, type, ToString(operation), error_type, CodeText(code)}).Inc();
}

void WebhookMetrics::FailedOpen(std::string_view name, std::string_view type) { fail_open_.With({name, type}).Inc(); }

void WebhookMetrics::ConditionError(std::string_view name, std::string_view kind, std::string_view type,
                                    Operation operation) {
  condition_errors_.With({name, kind, type, ToString(operation)}).Inc();
}

void WebhookMetrics::ConditionExcluded(std::string_view name, std::string_view kind, std::string_view type,
                                       Operation operation) {
  condition_exclusions_.With({name, kind, type, ToString(operation)}).Inc();
}

void WebhookMetrics::ConditionsEvaluated(std::string_view name, std::string_view kind, std::string_view type,
                                         Operation operation, std::chrono::nanoseconds took) {
  condition_seconds_.With({name, kind, type, ToString(operation)}).Observe(Seconds(took));
}

}  // namespace keelson::admission
