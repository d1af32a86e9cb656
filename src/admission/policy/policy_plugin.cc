#include "admission/policy/policy_plugin.h"

#include <algorithm>

#include "admission/plugins/plugins.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kGroup = "admissionregistration.k8s.io";

}  // namespace

PolicyPlugin::PolicyPlugin(const PluginContext& context, std::string_view name, PolicyForm form, std::string policies,
                           std::string bindings)
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
  if (const auto manifests = context.ManifestsOf(name)) {
    manifests->Follow([policies = policies_](const LoadedManifests& loaded) {
      policies->ReplaceStatic(loaded.objects, loaded.bindings);
    });
  }
}

namespace {

// Resources that policies never see (pkg/kubeapiserver/admission/exclusion): a policy that refused them could not be
// mended any more.
bool IsExcludedResource(const Attributes& attributes) {
  static constexpr std::pair<std::string_view, std::string_view> kExcluded[] = {
      {"authentication.k8s.io", "selfsubjectreviews"},       {"authentication.k8s.io", "tokenreviews"},
      {"authorization.k8s.io", "localsubjectaccessreviews"}, {"authorization.k8s.io", "selfsubjectaccessreviews"},
      {"authorization.k8s.io", "selfsubjectrulesreviews"},   {"authorization.k8s.io", "subjectaccessreviews"},
  };
  return std::ranges::any_of(kExcluded, [&](const auto& one) { return attributes.Is(one.first, one.second); });
}

}  // namespace

base::Ref<const PolicyList> PolicyPlugin::PoliciesFor(const Attributes& attributes) const {
  if (IsExcludedResource(attributes)) {
    static const base::Ref<const PolicyList> none = base::MakeRef<PolicyList>();
    return none;
  }
  return IsPolicyKind(attributes) ? policies_->LoadStatic() : policies_->Load();
}

std::string CheckPolicyConfiguration(Value configuration, std::string_view wanted) {
  constexpr ConfigurationKind kKinds[] = {{"apiserver.config.k8s.io", "v1", "ValidatingAdmissionPolicyConfiguration"},
                                          {"apiserver.config.k8s.io", "v1", "MutatingAdmissionPolicyConfiguration"}};
  if (configuration.is_null()) return "";
  if (std::string error = CheckConfigurationKind(configuration, kKinds); !error.empty()) return error;
  const std::string kind(configuration["kind"].as_string());
  return kind == wanted ? "" : "unexpected type: *policyconfig." + kind;
}

std::string CheckValidatingPolicy(Value configuration) {
  return CheckPolicyConfiguration(configuration, "ValidatingAdmissionPolicyConfiguration");
}

std::string CheckMutatingPolicy(Value configuration) {
  return CheckPolicyConfiguration(configuration, "MutatingAdmissionPolicyConfiguration");
}

bool IsPolicyKind(const Attributes& attributes) {
  if (attributes.kind.group != kGroup) return false;
  const std::string& kind = attributes.kind.kind;
  return kind == "ValidatingAdmissionPolicy" || kind == "ValidatingAdmissionPolicyBinding" ||
         kind == "MutatingAdmissionPolicy" || kind == "MutatingAdmissionPolicyBinding";
}

}  // namespace keelson::admission
