#include "admission/plugins/pod_security_metrics.h"

namespace keelson::admission {
namespace {

using telemetry::Stability;

// The minor version of this server: later ones are labelled "future".
constexpr std::int64_t kOwnMinor = 36;

std::string_view ResourceLabel(const Attributes& attributes) {
  if (attributes.Is("", "pods")) return "pod";
  return attributes.Is("", "namespaces") ? "namespace" : "controller";
}

std::string_view OperationLabel(const Attributes& attributes) {
  return attributes.operation == Operation::kCreate ? "create" : "update";
}

std::string VersionLabel(const podsecurity::LevelVersion& policy) {
  const std::int64_t minor = policy.version.minor;
  if (minor == podsecurity::Version::kLatest || policy.level == podsecurity::Level::kPrivileged) return "latest";
  return minor > kOwnMinor ? "future" : "v1." + std::to_string(minor);
}

}  // namespace

PodSecurityMetrics::PodSecurityMetrics(telemetry::MetricsRegistry& registry)
    : evaluations_(registry.Counters({.name = "pod_security_evaluations_total",
                                      .help = "Number of policy evaluations that occurred, not counting ignored or "
                                              "exempt requests.",
                                      .stability = Stability::kAlpha,
                                      .labels = {"decision", "policy_level", "policy_version", "mode",
                                                 "request_operation", "resource", "subresource"}})),
      exemptions_(
          registry.Counters({.name = "pod_security_exemptions_total",
                             .help = "Number of exempt requests, not counting ignored or out of scope requests.",
                             .stability = Stability::kAlpha,
                             .labels = {"request_operation", "resource", "subresource"}})),
      errors_(registry.Counters({.name = "pod_security_errors_total",
                                 .help = "Number of errors preventing normal evaluation. Non-fatal errors may result "
                                         "in the latest restricted profile being used for evaluation.",
                                 .stability = Stability::kAlpha,
                                 .labels = {"fatal", "request_operation", "resource", "subresource"}})) {
  // Upstream makes these before the first request.
  for (const std::string_view operation : {"create", "update"}) {
    evaluations_.With({"allow", "privileged", "latest", "enforce", operation, "pod", ""});
    for (const std::string_view resource : {"pod", "controller"}) exemptions_.With({operation, resource, ""});
  }
}

void PodSecurityMetrics::RecordEvaluation(Decision decision, const podsecurity::LevelVersion& policy, Mode mode,
                                          const Attributes& attributes) {
  constexpr std::string_view kModes[] = {"enforce", "audit", "warn"};
  evaluations_
      .With({decision == Decision::kAllow ? "allow" : "deny", podsecurity::ToString(policy.level), VersionLabel(policy),
             kModes[static_cast<std::size_t>(mode)], OperationLabel(attributes), ResourceLabel(attributes),
             attributes.subresource})
      .Inc();
}

void PodSecurityMetrics::RecordExemption(const Attributes& attributes) {
  exemptions_.With({OperationLabel(attributes), ResourceLabel(attributes), attributes.subresource}).Inc();
}

void PodSecurityMetrics::RecordError(Severity severity, const Attributes& attributes) {
  errors_
      .With({severity == Severity::kFatal ? "true" : "false", OperationLabel(attributes), ResourceLabel(attributes),
             attributes.subresource})
      .Inc();
}

}  // namespace keelson::admission
