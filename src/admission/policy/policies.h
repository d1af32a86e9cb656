// Admission policies and their bindings, compiled: an immutable list of policies with bindings, republished when
// something changes. Thread safety: Load() from any thread; the Apply functions one at a time each.
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
#include "admission/policy/expressions.h"
#include "base/atomic_ref.h"
#include "base/ref.h"

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

struct Policy {
  struct Validation {
    std::string message, reason;
  };
  struct AuditAnnotation {
    std::string key;
  };
  enum class PatchType : std::uint8_t { kApplyConfiguration, kJSONPatch };

  std::string name;
  Criteria criteria;
  bool fail_open = false;  // failurePolicy Ignore
  bool reinvoke = false;   // reinvocationPolicy IfNeeded
  std::optional<ParamKind> param_kind;
  std::shared_ptr<const PolicyCompiler::Variables> variables;
  std::vector<Expression> match_conditions;
  // Of validating policies; messages run beside validations, absent where there is no messageExpression.
  std::vector<Validation> validations;
  std::vector<Expression> validation_expressions, message_expressions;
  std::vector<AuditAnnotation> audit_annotations;
  std::vector<Expression> audit_expressions;
  // Of mutating policies.
  std::vector<PatchType> patch_types;
  std::vector<Expression> mutations;

  static Policy Of(Value policy);
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
  base::Ref<const PolicyList> Load() const { return published_.Load(); }
  void ApplyPolicies(std::span<const Informers::Change> changes);
  void ApplyBindings(std::span<const Informers::Change> changes);

 private:
  void Publish();  // REQUIRES: mutex_
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Policy>, std::less<>> policies_;
  std::map<std::string, std::shared_ptr<const PolicyBinding>, std::less<>> bindings_;
  base::AtomicRef<const PolicyList> published_{base::MakeRef<const PolicyList>()};
};

// The params of a binding: one null where the policy has no paramKind or the binding no paramRef. The error is the text
// of a configuration error.
Awaitable<Outcome<std::vector<Value>, std::string>> CollectParams(APIReader& reader, base::Arena& arena,
                                                                  const Policy& policy, const PolicyBinding& binding,
                                                                  std::string name_space);
// Why the policy's paramKind cannot be used; "" when it can.
std::string ParamKindError(APIReader& reader, const Policy& policy);

}  // namespace keelson::admission
