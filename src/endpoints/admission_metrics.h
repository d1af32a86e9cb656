// How long admission takes, by plugin and as a whole. Thread safety: all members from any thread.
#pragma once

#include "admission/admission.h"
#include "telemetry/metrics.h"

namespace keelson::endpoints {

class AdmissionMetrics {
 public:
  explicit AdmissionMetrics(telemetry::MetricsRegistry& registry);  // must outlive this
  void Observe(const admission::Observation& observation);

 private:
  telemetry::HistogramVec& steps_;
  telemetry::HistogramVec& controllers_;
};

}  // namespace keelson::endpoints
