#include "apiextensions/conversion_metrics.h"

namespace keelson::apiextensions {
namespace {

using telemetry::Stability;

std::string_view TypeOf(ConversionFailure failure) {
  switch (failure) {
    case ConversionFailure::kNone:
      return "";
    case ConversionFailure::kCall:
      return "conversion_webhook_call_failure";
    case ConversionFailure::kMalformedResponse:
      return "conversion_webhook_malformed_response_failure";
    case ConversionFailure::kPartialResponse:
      return "conversion_webhook_partial_response_failure";
    case ConversionFailure::kInvalidObject:
      return "conversion_webhook_invalid_converted_object_failure";
    case ConversionFailure::kNoObjects:
      return "conversion_webhook_no_objects_returned_failure";
  }
  return "";
}

}  // namespace

ConversionMetrics::ConversionMetrics(telemetry::MetricsRegistry& registry)
    : requests_(registry.Counters(
          {.name = "apiserver_conversion_webhook_request_total",
           .help = "Counter for conversion webhook requests with success/failure and failure error type",
           .stability = Stability::kAlpha,
           .labels = {"result", "failure_type"}})),
      durations_(
          registry.Histograms({.name = "apiserver_conversion_webhook_duration_seconds",
                               .help = "Conversion webhook request latency",
                               .stability = Stability::kAlpha,
                               .labels = {"result", "failure_type"},
                               .buckets = {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60}})),
      definition_durations_(registry.Histograms({.name = "apiserver_crd_conversion_webhook_duration_seconds",
                                                 .help = "CRD webhook conversion duration in seconds",
                                                 .stability = Stability::kAlpha,
                                                 .labels = {"crd_name", "from_version", "to_version", "succeeded"},
                                                 .buckets = {0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128,
                                                             0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384}})) {}

void ConversionMetrics::Observe(std::string_view definition, std::string_view from_version, std::string_view to_version,
                                ConversionFailure failure, std::chrono::nanoseconds took) {
  const bool succeeded = failure == ConversionFailure::kNone;
  const double seconds = std::chrono::duration<double>(took).count();
  const std::string_view result = succeeded ? "success" : "failure";
  requests_.With({result, TypeOf(failure)}).Inc();
  durations_.With({result, TypeOf(failure)}).Observe(seconds);
  definition_durations_.With({definition, from_version, to_version, succeeded ? "true" : "false"}).Observe(seconds);
}

}  // namespace keelson::apiextensions
