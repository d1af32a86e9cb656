// How long admission takes, by plugin and as a whole. Thread safety: all members from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string>

#include "admission/admission.h"
#include "telemetry/metrics.h"

namespace keelson::endpoints {

class AdmissionMetrics {
 public:
  explicit AdmissionMetrics(telemetry::MetricsRegistry& registry);  // must outlive this
  ~AdmissionMetrics();
  AdmissionMetrics(const AdmissionMetrics&) = delete;
  AdmissionMetrics& operator=(const AdmissionMetrics&) = delete;
  void Observe(const admission::Observation& observation);

 private:
  telemetry::Histogram& Find(const admission::Observation& observation);

  telemetry::HistogramVec& steps_;
  telemetry::HistogramVec& controllers_;

  // Series by what they are of, since a write observes some 25 of them. The first that comes to a slot stays there;
  // others that belong there are looked up in the family each time.
  struct Known {
    std::string plugin;
    std::size_t kind;
    telemetry::Histogram* series;
  };
  static constexpr std::size_t kKnownMax = 1024;
  std::array<std::atomic<const Known*>, kKnownMax> known_{};
};

}  // namespace keelson::endpoints
