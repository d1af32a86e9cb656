// ValidatingAdmissionPolicy: expressions of policies judge requests that their bindings select.
#include <algorithm>

#include "admission/plugins/plugins.h"
#include "admission/policy/evaluation.h"
#include "admission/policy/policies.h"
#include "admission/policy/policy_plugin.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::admission {
namespace {

constexpr std::size_t kMessageBytesMax = 5 * 1024;
constexpr std::size_t kAuditValueBytesMax = 10 * 1024;

struct Decision {
  bool deny = false;
  bool error = false;  // the expression could not be evaluated
  std::string message, reason;
  std::chrono::nanoseconds took{0};
};

struct Annotation {
  std::string key, value, error;  // an empty value without error is left out
  std::chrono::nanoseconds took{0};
};

struct Judgement {
  std::vector<Decision> decisions;
  std::vector<Annotation> annotations;
  bool pending = false;
};

std::string TrimText(std::string_view text) { return std::string(base::Trim(text)); }

// messageExpression, else message, else the expression.
std::string MessageOf(const Policy& policy, std::size_t index, const EvaluatedAll& messages) {
  std::string text;
  if (index < messages.results.size()) {
    const Evaluated& message = messages.results[index];
    if (message.present && message.error.empty() && message.value.is_string()) text = TrimText(message.value.text());
    if (text.size() > kMessageBytesMax || text.find('\n') != std::string::npos) text.clear();
  }
  if (text.empty()) text = TrimText(policy.validations[index].message);
  if (text.empty()) text = "failed expression: " + TrimText(policy.validation_expressions[index].text);
  return text;
}

Judgement OnlyError(const Policy& policy, std::string message) {
  return {.decisions = {{.deny = !policy.fail_open, .error = true, .message = std::move(message)}}};
}

Judgement Judge(base::Arena& arena, const Policy& policy, const PolicyInputs& inputs) {
  const auto& variables = *policy.variables;
  const EvaluatedAll validations =
      EvaluateExpressions(arena, variables, policy.validation_expressions, inputs, kRuntimeCostBudget);
  if (validations.pending) return {.pending = true};
  if (!validations.error.empty()) return OnlyError(policy, validations.error);
  PolicyInputs unauthorized = inputs;
  unauthorized.authorizer = nullptr;
  const EvaluatedAll messages =
      EvaluateExpressions(arena, variables, policy.message_expressions, unauthorized, validations.remaining_budget);
  Judgement judgement;
  for (std::size_t i = 0; i < validations.results.size(); ++i) {
    const Evaluated& evaluated = validations.results[i];
    Decision& decision = judgement.decisions.emplace_back();
    if (!evaluated.error.empty()) {
      decision = {.deny = !policy.fail_open, .error = true, .message = evaluated.error};
    } else if (!messages.error.empty()) {
      decision = {.deny = !policy.fail_open, .error = true, .message = "failed messageExpression: " + messages.error};
    } else if (!evaluated.value.is_true()) {
      decision = {.deny = true, .message = MessageOf(policy, i, messages), .reason = policy.validations[i].reason};
    }
    decision.took = evaluated.took;
  }
  const EvaluatedAll annotations =
      EvaluateExpressions(arena, variables, policy.audit_expressions, unauthorized, kRuntimeCostBudget);
  if (!annotations.error.empty()) return OnlyError(policy, annotations.error);
  for (std::size_t i = 0; i < annotations.results.size(); ++i) {
    const Evaluated& evaluated = annotations.results[i];
    Annotation annotation{.key = policy.audit_annotations[i].key, .took = evaluated.took};
    if (!evaluated.error.empty()) {
      if (policy.fail_open) continue;
      annotation.error = evaluated.error;
    } else if (evaluated.value.is_string()) {
      annotation.value = TrimText(evaluated.value.text()).substr(0, kAuditValueBytesMax);
    }
    judgement.annotations.push_back(std::move(annotation));
  }
  return judgement;
}

struct Denial {
  std::string policy, binding, message, reason;
};

meta::Status StatusOf(const Attributes& attributes, const Denial& denial) {
  std::string message = "ValidatingAdmissionPolicy '" + denial.policy + "'";
  if (!denial.binding.empty()) message += " with binding '" + denial.binding + "'";
  message += " denied request: " + denial.message;
  meta::Status::Fields fields = NewForbidden(attributes, message).fields();
  using Reason = meta::StatusReason;
  if (denial.reason == "Forbidden") {
    fields.reason = Reason::kForbidden;
    fields.code = 403;
  } else if (denial.reason == "Unauthorized") {
    fields.reason = Reason::kUnauthorized;
    fields.code = 401;
  } else if (denial.reason == "RequestEntityTooLarge") {
    fields.reason = Reason::kRequestEntityTooLarge;
    fields.code = 413;
  } else {
    fields.reason = Reason::kInvalid;
    fields.code = 422;
  }
  if (!fields.details) fields.details.emplace();
  fields.details->causes.push_back({.reason = "", .message = std::move(message)});
  return meta::Status(std::move(fields));
}

std::string FailureAnnotation(const PolicyBinding& binding, std::size_t index, const std::string& message) {
  std::string value = "[{\"message\":";
  object::AppendJSONString(value, message);
  value += ",\"policy\":";
  object::AppendJSONString(value, binding.policy);
  value += ",\"binding\":";
  object::AppendJSONString(value, binding.name);
  value += ",\"expressionIndex\":" + std::to_string(index) + ",\"validationActions\":[";
  for (const std::string& action : binding.actions) {
    if (value.back() != '[') value += ',';
    object::AppendJSONString(value, action);
  }
  return value + "]}]";
}

// One request on its way through all policies.
class Dispatch {
 public:
  Dispatch(const PolicyDependencies& dependencies, request::Context& context, const Attributes& attributes)
      : dependencies_(dependencies),
        api_(*dependencies.api),
        context_(context),
        attributes_(attributes),
        matcher_(*dependencies.reader, context, attributes),
        authorizer_(api_, context) {}

  Task<void> Run(const PolicyList& list) {
    for (const PolicyHook& hook : list.hooks) KS_CO_RETURN_IF_ERROR(co_await RunPolicy(hook));
    if (!denials_.empty()) co_return StatusOf(attributes_, denials_.front());
    co_return meta::Result<void>();
  }

 private:
  void ConfigurationError(const Policy& policy, const PolicyBinding* binding, const std::string& error) {
    if (policy.fail_open) return;
    denials_.push_back(
        {.policy = policy.name,
         .binding = binding == nullptr ? "" : binding->name,
         .message = (binding == nullptr ? "failed to configure policy: " : "failed to configure binding: ") + error,
         .reason = ""});
  }

  Task<void> RunPolicy(const PolicyHook& hook) {
    const Policy& policy = *hook.policy;
    auto matched = co_await matcher_.Match(policy.criteria);
    if (!matched.ok()) {
      ConfigurationError(policy, nullptr, std::string(matched.error().message()));
      co_return meta::Result<void>();
    }
    if (!*matched) co_return meta::Result<void>();
    if (const std::string error = ParamKindError(api_, policy); !error.empty()) {
      ConfigurationError(policy, nullptr, error);
      co_return meta::Result<void>();
    }
    std::map<std::string, std::vector<std::string>> annotations;
    for (const auto& binding : hook.bindings)
      KS_CO_RETURN_IF_ERROR(co_await RunBinding(policy, *binding, **matched, annotations));
    for (const auto& [key, values] : annotations)
      context_.audit_annotations.Add(policy.name + "/" + key, base::Join(values, ", "));
    co_return meta::Result<void>();
  }

  Task<void> RunBinding(const Policy& policy, const PolicyBinding& binding, ObjectInterfaces::Resource matched,
                        std::map<std::string, std::vector<std::string>>& annotations) {
    if (binding.criteria) {
      auto own = co_await matcher_.Match(*binding.criteria);
      if (!own.ok()) {
        ConfigurationError(policy, &binding, std::string(own.error().message()));
        co_return meta::Result<void>();
      }
      if (!*own) co_return meta::Result<void>();
    }
    auto params = co_await CollectParams(api_, context_.arena, policy, binding, attributes_.name_space);
    if (!params.ok()) {
      ConfigurationError(policy, &binding, params.error());
      co_return meta::Result<void>();
    }
    if (params->empty()) co_return meta::Result<void>();
    auto inputs = co_await InputsFor(matched);
    if (!inputs.ok()) {
      ConfigurationError(policy, &binding,
                         "failed to convert object version: " + std::string(inputs.error().message()));
      co_return meta::Result<void>();
    }
    KS_CO_RETURN_IF_ERROR(co_await ReadNamespace());
    for (const Value param : *params) {
      PolicyInputs with = **inputs;
      with.namespace_object = namespace_;
      with.params = param;
      Act(policy, binding, co_await JudgeRequest(policy, with), annotations);
    }
    co_return meta::Result<void>();
  }

  Awaitable<Judgement> JudgeRequest(const Policy& policy, const PolicyInputs& inputs) {
    if (!policy.match_conditions.empty()) {
      const ConditionsResult conditions =
          co_await EvaluateConditions(context_.arena, *policy.variables, policy.match_conditions, inputs,
                                      dependencies_.ConditionsObserverOf(policy));
      // An evaluation error is the failure policy's matter; Ignore skips the policy.
      if (!conditions.error.empty()) co_return policy.fail_open ? Judgement() : OnlyError(policy, conditions.error);
      if (!conditions.matches) co_return Judgement();
    }
    Judgement judgement = Judge(context_.arena, policy, inputs);
    // Authorizer checks are answered between evaluations.
    while (judgement.pending && co_await authorizer_.Fetch()) judgement = Judge(context_.arena, policy, inputs);
    co_return judgement;
  }

  void Observe(const Policy& policy, const PolicyBinding& binding, const std::string& error, std::string_view action,
               std::chrono::nanoseconds took) const {
    if (dependencies_.metrics != nullptr)
      dependencies_.metrics->Validated(policy.name, binding.name, error, action, took);
  }

  void Act(const Policy& policy, const PolicyBinding& binding, const Judgement& judgement,
           std::map<std::string, std::vector<std::string>>& annotations) {
    for (std::size_t i = 0; i < judgement.decisions.size(); ++i) {
      const Decision& decision = judgement.decisions[i];
      if (!decision.deny && decision.error) Observe(policy, binding, decision.message, "allow", decision.took);
      if (!decision.deny) continue;
      for (const std::string& action : binding.actions) {
        Observe(policy, binding, decision.message, base::ToLower(action), decision.took);
        if (action == "Deny") {
          denials_.push_back({policy.name, binding.name, decision.message, decision.reason});
        } else if (action == "Audit") {
          context_.audit_annotations.Add("validation.policy.admission.k8s.io/validation_failure",
                                         FailureAnnotation(binding, i, decision.message));
        } else if (action == "Warn") {
          context_.warnings.Add("Validation failed for ValidatingAdmissionPolicy '" + policy.name + "' with binding '" +
                                binding.name + "': " + decision.message);
        }
      }
    }
    for (const Annotation& annotation : judgement.annotations) {
      if (!annotation.error.empty()) {
        denials_.push_back({policy.name, binding.name, annotation.error, ""});
        Observe(policy, binding, annotation.error, "deny", annotation.took);
      } else if (!annotation.value.empty()) {
        auto& values = annotations[annotation.key];
        if (std::ranges::find(values, annotation.value) == values.end()) values.push_back(annotation.value);
      }
    }
  }

  // The object in the matched version, converted once per version.
  Task<const PolicyInputs*> InputsFor(ObjectInterfaces::Resource matched) {
    if (const auto found = inputs_.find(matched.kind); found != inputs_.end()) co_return &found->second;
    base::Arena& arena = context_.arena;
    PolicyInputs inputs{.authorizer = &authorizer_, .attributes = &attributes_};
    if (!attributes_.object.is_null()) {
      KS_CO_TRY(inputs.object, co_await attributes_.interfaces->ToDocument(arena, attributes_.object, matched.kind));
    }
    if (!attributes_.old_object.is_null()) {
      KS_CO_TRY(inputs.old_object,
                co_await attributes_.interfaces->ToDocument(arena, attributes_.old_object, matched.kind));
    }
    inputs.request = RequestValue(arena, context_, attributes_, matched);
    co_return &inputs_.emplace(matched.kind, std::move(inputs)).first->second;
  }

  Task<void> ReadNamespace() {
    const bool is_namespace = attributes_.kind.group.empty() && attributes_.kind.kind == "Namespace";
    if (namespace_read_ || attributes_.name_space.empty() || is_namespace) co_return meta::Result<void>();
    KS_CO_TRY(const Value found, co_await matcher_.Namespace());
    namespace_ = NamespaceValue(context_.arena, found);
    namespace_read_ = true;
    co_return meta::Result<void>();
  }

  const PolicyDependencies& dependencies_;
  APIReader& api_;
  request::Context& context_;
  const Attributes& attributes_;
  Matcher matcher_;
  CachingAuthorizer authorizer_;
  std::map<meta::GroupVersionKind, PolicyInputs> inputs_;
  Value namespace_;
  bool namespace_read_ = false;
  std::vector<Denial> denials_;
};

class ValidatingPolicies final : public PolicyPlugin {
 public:
  explicit ValidatingPolicies(const PluginContext& context)
      : PolicyPlugin(context, "validatingadmissionpolicies", "validatingadmissionpolicybindings") {}

  std::string_view name() const override { return "ValidatingAdmissionPolicy"; }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    if (IsPolicyKind(attributes)) co_return meta::Result<void>();
    const auto list = policies().Load();
    if (list->hooks.empty()) co_return meta::Result<void>();
    Dispatch dispatch(dependencies(), context, attributes);
    co_return co_await dispatch.Run(*list);
  }
};

}  // namespace

std::unique_ptr<Plugin> NewValidatingAdmissionPolicy(const PluginContext& context) {
  return std::make_unique<ValidatingPolicies>(context);
}

}  // namespace keelson::admission
