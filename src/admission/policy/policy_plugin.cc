#include "admission/policy/policy_plugin.h"

#include "admission/plugins/plugins.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

}  // namespace

PolicyPlugin::PolicyPlugin(const PluginContext& context, PolicyForm form, std::string policies, std::string bindings)
    : dependencies_{.reader = context.reader,
                    .api = context.api,
                    .metrics = context.policy_metrics,
                    .condition_metrics = context.webhook_metrics,
                    .time_zones = context.time_zones},
      policies_(std::make_shared<Policies>(form)) {
  policies_synced_ =
      context.informers->Follow(std::string(kGroup), std::move(policies),
                                [policies = policies_](auto changes) { policies->ApplyPolicies(changes); });
  bindings_synced_ =
      context.informers->Follow(std::string(kGroup), std::move(bindings),
                                [policies = policies_](auto changes) { policies->ApplyBindings(changes); });
}

bool IsPolicyKind(const Attributes& attributes) {
  if (attributes.kind.group != kGroup) return false;
  const std::string& kind = attributes.kind.kind;
  return kind == "ValidatingAdmissionPolicy" || kind == "ValidatingAdmissionPolicyBinding" ||
         kind == "MutatingAdmissionPolicy" || kind == "MutatingAdmissionPolicyBinding";
}

}  // namespace keelson::admission
