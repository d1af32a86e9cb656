// Admission policies and their bindings, compiled: an immutable list of policies with bindings, republished when
// something changes. Thread safety: all members from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "admission/admission.h"
#include "admission/api_reader.h"
#include "admission/match/criteria.h"
#include "base/atomic_ref.h"
#include "base/ref.h"
#include "cel/mutating_policy.h"

namespace keelson::admission {

struct ParamKind {
  std::string api_version, kind;
  meta::GroupVersionKind group_version_kind() const;
};

struct ParamRef {
  std::string name, name_space;
  std::optional<meta::LabelSelector> selector;
  bool deny_when_missing = false;
};

struct PolicyBinding {
  std::string name, policy;
  std::optional<Criteria> criteria;  // none: every request that the policy matches
  std::optional<ParamRef> param_ref;
  std::vector<std::string> actions;  // Deny, Warn, Audit
};

enum class PolicyForm : std::uint8_t { kValidating, kMutating };

struct Policy {
  std::string name;
  Criteria criteria;
  bool fail_open = false;  // failurePolicy Ignore
  bool reinvoke = false;   // reinvocationPolicy IfNeeded
  std::optional<ParamKind> param_kind;
  std::shared_ptr<const cel::ValidatingPolicyProgram> validating;  // null of a mutating policy
  std::shared_ptr<const cel::MutatingPolicyProgram> mutating;      // null of a validating policy

  static Policy Of(Value policy, PolicyForm form);
};

struct PolicyHook {
  std::shared_ptr<const Policy> policy;
  std::vector<std::shared_ptr<const PolicyBinding>> bindings;  // by name
};

struct PolicyList : base::RefCounted {
  std::vector<PolicyHook> hooks;  // policies that have bindings, by name
};

class Policies {
 public:
  explicit Policies(PolicyForm form) : form_(form) {}
  // Policies of static manifests first, then those of the API.
  base::Ref<const PolicyList> Load() const { return published_.Load(); }
  base::Ref<const PolicyList> LoadStatic() const { return static_.Load(); }
  void ApplyPolicies(std::span<const Informers::Change> changes);
  void ApplyBindings(std::span<const Informers::Change> changes);
  // All policies and bindings of static manifests, by name.
  void ReplaceStatic(std::span<const Value> policies, std::span<const Value> bindings);

 private:
  using PolicyMap = std::map<std::string, std::shared_ptr<const Policy>, std::less<>>;
  using BindingMap = std::map<std::string, std::shared_ptr<const PolicyBinding>, std::less<>>;
  static void AppendHooks(const PolicyMap& policies, const BindingMap& bindings, std::vector<PolicyHook>& hooks);
  void Publish();  // REQUIRES: mutex_
  const PolicyForm form_;
  std::mutex mutex_;
  PolicyMap policies_;
  BindingMap bindings_;
  base::AtomicRef<const PolicyList> static_{base::MakeRef<const PolicyList>()};
  base::AtomicRef<const PolicyList> published_{base::MakeRef<const PolicyList>()};
};

// False: the policy is evaluated once, with params null.
inline bool HasParams(const Policy& policy, const PolicyBinding& binding) {
  return policy.param_kind.has_value() && binding.param_ref.has_value();
}
// The params of a binding: one null where the policy has no paramKind or the binding no paramRef. The error is the text
// of a configuration error.
Awaitable<Outcome<std::vector<Value>, std::string>> CollectParams(APIReader& reader, base::Arena& arena,
                                                                  const Policy& policy, const PolicyBinding& binding,
                                                                  std::string name_space);
// Why the policy's paramKind cannot be used; "" when it can.
std::string ParamKindError(APIReader& reader, const Policy& policy);

}  // namespace keelson::admission
