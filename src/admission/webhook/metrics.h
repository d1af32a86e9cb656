// Metrics of webhook calls, with upstream's names. Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <string_view>

#include "admission/attributes.h"
#include "telemetry/metrics.h"

namespace keelson::admission {

class WebhookMetrics {
 public:
  explicit WebhookMetrics(telemetry::MetricsRegistry& registry);  // must outlive this

  // `type` is "admit" or "validating", as upstream says it.
  void Called(std::string_view name, std::string_view type, Operation operation, std::chrono::nanoseconds took,
              bool rejected, int code);
  // `error_type`: calling_webhook_error, apiserver_internal_error or no_error.
  void Rejected(std::string_view name, std::string_view type, Operation operation, std::string_view error_type,
                int code);
  void FailedOpen(std::string_view name, std::string_view type);
  // `kind` is webhook or policy; `type` admit or validate (of webhooks: validating).
  void ConditionError(std::string_view name, std::string_view kind, std::string_view type, Operation operation);
  void ConditionExcluded(std::string_view name, std::string_view kind, std::string_view type, Operation operation);
  void ConditionsEvaluated(std::string_view name, std::string_view kind, std::string_view type, Operation operation,
                           std::chrono::nanoseconds took);

 private:
  telemetry::HistogramVec& durations_;
  telemetry::CounterVec& rejections_;
  telemetry::CounterVec& fail_open_;
  telemetry::CounterVec& requests_;
  telemetry::CounterVec& condition_errors_;
  telemetry::CounterVec& condition_exclusions_;
  telemetry::HistogramVec& condition_seconds_;
};

}  // namespace keelson::admission
