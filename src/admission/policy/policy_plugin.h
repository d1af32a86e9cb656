// Parts that validating and mutating policies share: their compiled policies, and what evaluating them needs. Internal
// to admission.
#pragma once

#include <memory>
#include <string>

#include "admission/plugin_table.h"
#include "admission/policy/evaluation.h"
#include "admission/policy/metrics.h"
#include "admission/policy/policies.h"

namespace keelson::admission {

struct PolicyDependencies {
  ObjectReader* reader = nullptr;
  APIReader* api = nullptr;
  PolicyMetrics* metrics = nullptr;             // may be null
  WebhookMetrics* condition_metrics = nullptr;  // may be null
  const cel::TimeZones* time_zones = nullptr;   // of expressions; may be null

  // Upstream counts the conditions of both kinds of policies as "validate".
  ConditionsObserver ConditionsObserverOf(const Policy& policy) const {
    return {.metrics = condition_metrics, .name = policy.name, .kind = "policy", .type = "validate"};
  }
};

// Follows the policies and bindings of two resources.
class PolicyPlugin : public Plugin {
 public:
  bool Handles(Operation) const override { return true; }
  bool Ready() const override { return policies_synced_() && bindings_synced_(); }

 protected:
  PolicyPlugin(const PluginContext& context, std::string_view name, PolicyForm form, std::string policies,
               std::string bindings);
  // Those that may see the request: policies and bindings themselves are judged by static manifests only.
  base::Ref<const PolicyList> PoliciesFor(const Attributes& attributes) const;
  const PolicyDependencies& dependencies() const { return dependencies_; }

 private:
  PolicyDependencies dependencies_;
  std::shared_ptr<Policies> policies_;
  Informers::HasSynced policies_synced_, bindings_synced_;
};

}  // namespace keelson::admission
