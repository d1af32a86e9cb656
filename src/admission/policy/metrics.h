// Metrics of admission policies, with upstream's names. Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <string_view>

#include "telemetry/metrics.h"

namespace keelson::admission {

class PolicyMetrics {
 public:
  explicit PolicyMetrics(telemetry::MetricsRegistry& registry);  // must outlive this

  // One decision of a validating policy; `action` is allow, deny, audit or warn. `error` is its error or message, "" of
  // a validation that held.
  void Validated(std::string_view policy, std::string_view binding, std::string_view error, std::string_view action,
                 std::chrono::nanoseconds took);
  // One mutation; `error` is "" when it went well.
  void Mutated(std::string_view policy, std::string_view binding, std::string_view error,
               std::chrono::nanoseconds took);

 private:
  telemetry::CounterVec& validations_;
  telemetry::HistogramVec& validation_seconds_;
  telemetry::CounterVec& mutations_;
  telemetry::HistogramVec& mutation_seconds_;
};

}  // namespace keelson::admission
