#include "admission/policy/policies.h"

namespace keelson::admission {
namespace {

std::string TextOf(Value value, std::string_view key) { return std::string(value[key].as_string()); }

std::shared_ptr<const PolicyBinding> BindingOf(Value binding) {
  auto compiled = std::make_shared<PolicyBinding>();
  const Value spec = binding["spec"];
  compiled->name = TextOf(binding["metadata"], "name");
  compiled->policy = TextOf(spec, "policyName");
  if (const Value match = spec["matchResources"]; match.is_map()) compiled->criteria = Criteria::OfPolicy(match);
  if (const Value reference = spec["paramRef"]; reference.is_map()) {
    ParamRef& ref = compiled->param_ref.emplace();
    ref.name = TextOf(reference, "name");
    ref.name_space = TextOf(reference, "namespace");
    if (reference["selector"].is_map()) ref.selector = LabelSelectorOf(reference["selector"]);
    ref.deny_when_missing = reference["parameterNotFoundAction"].as_string() == "Deny";
  }
  for (const Value action : spec["validationActions"].items()) compiled->actions.emplace_back(action.as_string());
  return compiled;
}

}  // namespace

meta::GroupVersionKind ParamKind::group_version_kind() const {
  const auto slash = api_version.find('/');
  if (slash == std::string::npos) return {"", api_version, kind};
  return {api_version.substr(0, slash), api_version.substr(slash + 1), kind};
}

Policy Policy::Of(Value object, PolicyForm form) {
  Policy policy;
  const Value spec = object["spec"];
  policy.name = TextOf(object["metadata"], "name");
  policy.criteria = Criteria::OfPolicy(spec["matchConstraints"]);
  policy.fail_open = spec["failurePolicy"].as_string() == "Ignore";
  policy.reinvoke = spec["reinvocationPolicy"].as_string() == "IfNeeded";
  if (const Value kind = spec["paramKind"]; kind.is_map())
    policy.param_kind = ParamKind{TextOf(kind, "apiVersion"), TextOf(kind, "kind")};
  if (form == PolicyForm::kValidating) {
    policy.validating = cel::ValidatingPolicyProgram::New(spec, cel::ExpressionMode::kStored);
  } else {
    policy.mutating = cel::MutatingPolicyProgram::New(spec, cel::ExpressionMode::kStored);
  }
  return policy;
}

void Policies::ApplyPolicies(std::span<const Informers::Change> changes) {
  // Compiled without the lock: bindings may change meanwhile.
  std::vector<std::pair<std::string, std::shared_ptr<const Policy>>> compiled;
  for (const Informers::Change& change : changes) {
    std::shared_ptr<const Policy> policy;
    if (!change.deleted) policy = std::make_shared<const Policy>(Policy::Of(change.object, form_));
    compiled.emplace_back(TextOf(change.object["metadata"], "name"), std::move(policy));
  }
  std::lock_guard lock(mutex_);
  for (auto& [name, policy] : compiled) {
    if (policy) {
      policies_[name] = std::move(policy);
    } else {
      policies_.erase(name);
    }
  }
  Publish();
}

void Policies::ApplyBindings(std::span<const Informers::Change> changes) {
  std::lock_guard lock(mutex_);
  for (const Informers::Change& change : changes) {
    std::string name = TextOf(change.object["metadata"], "name");
    if (change.deleted) {
      bindings_.erase(name);
    } else {
      bindings_[std::move(name)] = BindingOf(change.object);
    }
  }
  Publish();
}

void Policies::ReplaceStatic(std::span<const Value> policies, std::span<const Value> bindings) {
  PolicyMap compiled;
  for (const Value policy : policies) {
    compiled.emplace(TextOf(policy["metadata"], "name"), std::make_shared<const Policy>(Policy::Of(policy, form_)));
  }
  BindingMap read;
  for (const Value binding : bindings) read.emplace(TextOf(binding["metadata"], "name"), BindingOf(binding));
  auto list = base::MakeRef<PolicyList>();
  AppendHooks(compiled, read, list->hooks);
  std::lock_guard lock(mutex_);
  static_.Store(std::move(list));
  Publish();
}

void Policies::AppendHooks(const PolicyMap& policies, const BindingMap& bindings, std::vector<PolicyHook>& hooks) {
  std::map<std::string_view, std::vector<std::shared_ptr<const PolicyBinding>>> by_policy;
  for (const auto& [name, binding] : bindings) by_policy[binding->policy].push_back(binding);
  for (auto& [name, bound] : by_policy) {
    const auto policy = policies.find(name);
    if (policy != policies.end()) hooks.push_back({policy->second, std::move(bound)});
  }
}

void Policies::Publish() {
  auto list = base::MakeRef<PolicyList>();
  list->hooks = static_.Load()->hooks;
  AppendHooks(policies_, bindings_, list->hooks);
  published_.Store(std::move(list));
}

std::string ParamKindError(APIReader& reader, const Policy& policy) {
  if (!policy.param_kind) return "";
  const meta::GroupVersionKind kind = policy.param_kind->group_version_kind();
  if (reader.FindKind(kind)) return "";
  return "failed to find resource referenced by paramKind: '" + kind.ToString() + "'";
}

Awaitable<Outcome<std::vector<Value>, std::string>> CollectParams(APIReader& reader, base::Arena& arena,
                                                                  const Policy& policy, const PolicyBinding& binding,
                                                                  std::string name_space) {
  std::vector<Value> params;
  if (!HasParams(policy, binding)) {
    params.emplace_back();
    co_return params;
  }
  const ParamRef& ref = *binding.param_ref;
  const meta::GroupVersionKind kind = policy.param_kind->group_version_kind();
  const auto found = reader.FindKind(kind);
  if (!found) co_return "paramKind kind `" + kind.ToString() + "` not known";
  std::string where;
  if (found->namespaced) {
    where = ref.name_space.empty() ? name_space : ref.name_space;
    if (where.empty())
      co_return std::string("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources");
  } else if (!ref.name_space.empty()) {
    co_return std::string("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
  }
  if (!ref.name.empty()) {
    auto param = co_await reader.GetDocument(arena, kind, where, ref.name);
    if (param.ok()) {
      params.push_back(*param);
    } else if (param.error().reason() != meta::StatusReason::kNotFound) {
      co_return std::string(param.error().message());
    }
  } else if (ref.selector) {
    auto list = co_await reader.ListDocuments(arena, kind, where);
    if (!list.ok()) co_return std::string(list.error().message());
    for (const Value param : *list) {
      if (SelectorMatches(*ref.selector, param.Get("metadata", "labels"))) params.push_back(param);
    }
  }
  if (params.empty() && ref.deny_when_missing)
    co_return std::string("no params found for policy binding with `Deny` parameterNotFoundAction");
  co_return params;
}

}  // namespace keelson::admission
