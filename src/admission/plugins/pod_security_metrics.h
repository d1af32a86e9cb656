// pod_security_*: what the PodSecurity plugin decided. Thread safety: all members from any thread.
#pragma once

#include <cstdint>

#include "admission/attributes.h"
#include "admission/plugins/pod_security_checks.h"
#include "telemetry/metrics.h"

namespace keelson::admission {

class PodSecurityMetrics {
 public:
  enum class Mode : std::uint8_t { kEnforce, kAudit, kWarn };
  enum class Decision : std::uint8_t { kAllow, kDeny };
  enum class Severity : std::uint8_t { kFatal, kNonFatal };

  explicit PodSecurityMetrics(telemetry::MetricsRegistry& registry);
  void RecordEvaluation(Decision decision, const podsecurity::LevelVersion& policy, Mode mode,
                        const Attributes& attributes);
  void RecordExemption(const Attributes& attributes);
  void RecordError(Severity severity, const Attributes& attributes);

 private:
  telemetry::CounterVec& evaluations_;
  telemetry::CounterVec& exemptions_;
  telemetry::CounterVec& errors_;
};

}  // namespace keelson::admission
