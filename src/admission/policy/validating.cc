// ValidatingAdmissionPolicy: expressions of policies judge requests that their bindings select.
#include <algorithm>

#include "admission/plugins/plugins.h"
#include "admission/policy/evaluation.h"
#include "admission/policy/policies.h"
#include "admission/policy/policy_plugin.h"
#include "admission/request_interrupt.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kName = "ValidatingAdmissionPolicy";
constexpr std::size_t kAuditValueBytesMax = 10 * 1024;

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
        authorizer_(api_, context),
        interrupt_(context.cancellation.get()) {}

  Task<void> Run(const PolicyList& list) {
    for (const PolicyHook& hook : list.hooks) {
      const auto now = matcher_.MatchNow(hook.policy->criteria);
      if (now && !*now) continue;  // most policies on most requests: no coroutine
      KS_CO_RETURN_IF_ERROR(co_await RunPolicy(hook, now ? *now : std::nullopt));
    }
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

  // `matched`: nothing if only Match() can decide.
  Task<void> RunPolicy(const PolicyHook& hook, std::optional<ObjectInterfaces::Resource> matched) {
    const Policy& policy = *hook.policy;
    if (!matched) {
      auto found = co_await matcher_.Match(policy.criteria);
      if (!found.ok()) {
        ConfigurationError(policy, nullptr, std::string(found.error().message()));
        co_return meta::Result<void>();
      }
      if (!*found) co_return meta::Result<void>();
      matched = *std::move(found);
    }
    if (const std::string error = ParamKindError(api_, policy); !error.empty()) {
      ConfigurationError(policy, nullptr, error);
      co_return meta::Result<void>();
    }
    std::map<std::string, std::vector<std::string>> annotations;
    for (const auto& binding : hook.bindings)
      KS_CO_RETURN_IF_ERROR(co_await RunBinding(policy, *binding, *matched, annotations));
    for (const auto& [key, values] : annotations)
      context_.audit_annotations.Add(policy.name + "/" + key, base::Join(values, ", "));
    co_return meta::Result<void>();
  }

  Task<void> RunBinding(const Policy& policy, const PolicyBinding& binding, const ObjectInterfaces::Resource& matched,
                        std::map<std::string, std::vector<std::string>>& annotations) {
    if (binding.criteria) {
      auto own = co_await matcher_.Match(*binding.criteria);
      if (!own.ok()) {
        ConfigurationError(policy, &binding, std::string(own.error().message()));
        co_return meta::Result<void>();
      }
      if (!*own) co_return meta::Result<void>();
    }
    std::vector<Value> params;
    if (HasParams(policy, binding)) {
      auto collected = co_await CollectParams(api_, context_.arena, policy, binding, attributes_.name_space);
      if (!collected.ok()) {
        ConfigurationError(policy, &binding, collected.error());
        co_return meta::Result<void>();
      }
      params = *std::move(collected);
      if (params.empty()) co_return meta::Result<void>();
    }
    if (!inputs_.contains(matched.resource)) {
      if (const auto made = co_await MakeInputs(matched); !made.ok()) {
        ConfigurationError(policy, &binding,
                           "failed to convert object version: " + std::string(made.error().message()));
        co_return meta::Result<void>();
      }
    }
    if (!namespace_read_) KS_CO_RETURN_IF_ERROR(co_await ReadNamespace());
    cel::AdmissionInputs with = inputs_.find(matched.resource)->second;
    with.namespace_object = namespace_;
    if (params.empty()) params.emplace_back();
    for (const Value param : params) {
      with.params = param;
      cel::PolicyResult result;
      if (!policy.validating->has_match_conditions()) result = policy.validating->Validate(context_.arena, with);
      // Conditions are measured, and authorizer checks answered between evaluations.
      if (policy.validating->has_match_conditions() || result.pending) result = co_await Judge(policy, with);
      Act(policy, binding, result, annotations);
    }
    co_return meta::Result<void>();
  }

  Awaitable<cel::PolicyResult> Judge(const Policy& policy, const cel::AdmissionInputs& inputs) {
    const cel::ValidatingPolicyProgram& program = *policy.validating;
    if (program.has_match_conditions()) {
      const std::function<cel::MatchResult()> match = [&] { return program.Match(context_.arena, inputs); };
      const cel::MatchResult matched = co_await EvaluateConditions(match, authorizer_, attributes_.operation,
                                                                   dependencies_.ConditionsObserverOf(policy));
      if (!matched.matches) co_return program.Unmatched(matched);
    }
    cel::PolicyResult result = program.Validate(context_.arena, inputs);
    // Authorizer checks are answered between evaluations.
    while (result.pending && co_await authorizer_.Fetch()) result = program.Validate(context_.arena, inputs);
    co_return result;
  }

  void Observe(const Policy& policy, const PolicyBinding& binding, const std::string& error, std::string_view action,
               std::chrono::nanoseconds took) const {
    if (dependencies_.metrics != nullptr)
      dependencies_.metrics->Validated(policy.name, binding.name, error, action, took);
  }

  void Act(const Policy& policy, const PolicyBinding& binding, const cel::PolicyResult& result,
           std::map<std::string, std::vector<std::string>>& annotations) {
    using Decision = cel::PolicyDecision;
    for (std::size_t i = 0; i < result.decisions.size(); ++i) {
      const Decision& decision = result.decisions[i];
      const bool deny = decision.action == Decision::Action::kDeny;
      if (!deny && decision.evaluation == Decision::Evaluation::kError)
        Observe(policy, binding, decision.message, "allow", decision.took);
      if (!deny) continue;
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
    using AnnotationAction = cel::PolicyAuditAnnotation::Action;
    for (const cel::PolicyAuditAnnotation& annotation : result.audit_annotations) {
      if (annotation.action == AnnotationAction::kError) {
        denials_.push_back({policy.name, binding.name, annotation.error, ""});
        Observe(policy, binding, annotation.error, "deny", annotation.took);
      } else if (annotation.action == AnnotationAction::kPublish) {
        std::string value = annotation.value.substr(0, kAuditValueBytesMax);
        auto& values = annotations[annotation.key];
        if (std::ranges::find(values, value) == values.end()) values.push_back(std::move(value));
      }
    }
  }

  // The object in the matched version, converted once per version.
  Task<void> MakeInputs(const ObjectInterfaces::Resource& matched) {
    base::Arena& arena = context_.arena;
    cel::AdmissionInputs inputs{.authorizer = &authorizer_,
                                .request_resource = RequestResource(attributes_),
                                .time_zones = dependencies_.time_zones,
                                .interrupt = &interrupt_,
                                .now = SteadyNow};
    if (!attributes_.object.is_null()) {
      KS_CO_TRY(inputs.object, co_await attributes_.interfaces->ToDocument(arena, attributes_.object, matched.kind));
    }
    if (!attributes_.old_object.is_null()) {
      KS_CO_TRY(inputs.old_object,
                co_await attributes_.interfaces->ToDocument(arena, attributes_.old_object, matched.kind));
    }
    inputs.request = RequestValue(arena, context_, attributes_, matched);
    inputs_.emplace(matched.resource, std::move(inputs));
    co_return meta::Result<void>();
  }

  Task<void> ReadNamespace() {
    const bool is_namespace = attributes_.kind.group.empty() && attributes_.kind.kind == "Namespace";
    if (!attributes_.name_space.empty() && !is_namespace) {
      KS_CO_TRY(const Value found, co_await matcher_.Namespace());
      namespace_ = NamespaceValue(context_.arena, found);
    }
    namespace_read_ = true;
    co_return meta::Result<void>();
  }

  const PolicyDependencies& dependencies_;
  APIReader& api_;
  request::Context& context_;
  const Attributes& attributes_;
  Matcher matcher_;
  CachingAuthorizer authorizer_;
  RequestInterrupt interrupt_;
  // By resource: subresources of all versions of a custom resource may have one kind (Scale).
  std::map<meta::GroupVersionResource, cel::AdmissionInputs> inputs_;
  Value namespace_;
  bool namespace_read_ = false;
  std::vector<Denial> denials_;
};

class ValidatingPolicies final : public PolicyPlugin {
 public:
  explicit ValidatingPolicies(const PluginContext& context)
      : PolicyPlugin(context, kName, PolicyForm::kValidating, "validatingadmissionpolicies",
                     "validatingadmissionpolicybindings") {}

  std::string_view name() const override { return kName; }

  Task<void> Validate(request::Context& context, const Attributes& attributes) override {
    const auto list = PoliciesFor(attributes);
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
