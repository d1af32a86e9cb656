// Metrics of conversion webhooks, with upstream's names. Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "telemetry/metrics.h"

namespace keelson::apiextensions {

enum class ConversionFailure : std::uint8_t {
  kNone,
  kCall,
  kMalformedResponse,
  kPartialResponse,
  kInvalidObject,
  kNoObjects
};

class ConversionMetrics {
 public:
  explicit ConversionMetrics(telemetry::MetricsRegistry& registry);  // must outlive this

  // One call of a webhook for objects of the definition, from one version to another.
  void Observe(std::string_view definition, std::string_view from_version, std::string_view to_version,
               ConversionFailure failure, std::chrono::nanoseconds took);

 private:
  telemetry::CounterVec& requests_;
  telemetry::HistogramVec& durations_;
  telemetry::HistogramVec& definition_durations_;
};

}  // namespace keelson::apiextensions
