// MutatingAdmissionPolicy: policies change objects by apply configurations and JSON patches, one after the other.
#include "admission/plugins/plugins.h"
#include "admission/policy/apply_patch.h"
#include "admission/policy/evaluation.h"
#include "admission/policy/policies.h"
#include "admission/policy/policy_plugin.h"
#include "admission/reinvocation.h"
#include "admission/request_interrupt.h"
#include "base/check.h"
#include "base/strings.h"
#include "codec/scheme.h"
#include "object/json_text.h"
#include "schema/schema.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kName = "MutatingAdmissionPolicy";

// One policy with one binding and one of its params.
struct Invocation {
  std::shared_ptr<const Policy> policy;
  std::shared_ptr<const PolicyBinding> binding;
  ObjectInterfaces::Resource matched;
  Value params;

  // Of reinvocation.
  std::string Key() const {
    return policy->name + "\n" + binding->name + "\n" + std::string(params.Get("metadata", "namespace").as_string()) +
           "/" + std::string(params.Get("metadata", "name").as_string());
  }
};

struct PolicyError {
  const Policy* policy;
  std::string text;
  bool invalid = true;  // reason Invalid; configuration errors keep Forbidden
};

// How one mutation went. Errors are the failure policy's matter.
struct Mutation {
  bool changed = false;  // the object may be another one
  std::string error;
};

// One request on its way through all mutating policies.
class Dispatch {
 public:
  Dispatch(const PolicyDependencies& dependencies, request::Context& context, Attributes& attributes,
           ReinvocationState& state)
      : dependencies_(dependencies),
        api_(*dependencies.api),
        context_(context),
        attributes_(attributes),
        state_(state),
        matcher_(*dependencies.reader, context, attributes),
        authorizer_(api_, context),
        interrupt_(context.cancellation.get()),
        merger_(dynamic_cast<const ConfigurationMerger*>(attributes.interfaces)) {
    KS_CHECK(merger_ != nullptr);  // Interfaces of served requests are both.
  }

  Task<void> Run(const PolicyList& list) {
    std::vector<Invocation> invocations;
    for (const PolicyHook& hook : list.hooks) co_await Select(hook, invocations);
    if (!invocations.empty()) {
      if (attributes_.reinvocation->is_reinvoke() && !(state_.last_output == attributes_.object))
        state_.RequirePreviouslyInvoked();
      KS_CO_RETURN_IF_ERROR(co_await ReadNamespace());
      for (const Invocation& invocation : invocations) KS_CO_RETURN_IF_ERROR(co_await Invoke(invocation));
      state_.last_output = attributes_.object.Clone(context_.arena);
    }
    co_return Refusal();
  }

 private:
  void ConfigurationError(const Policy& policy, const PolicyBinding* binding, const std::string& error) {
    std::string text = binding == nullptr ? "policy " + base::GoQuote(policy.name)
                                          : "policy '" + policy.name + "' with binding '" + binding->name + "'";
    text += " denied request: ";
    text += binding == nullptr ? "failed to configure policy: " : "failed to configure binding: ";
    errors_.push_back({&policy, text + error, false});
  }

  void Failure(const Invocation& invocation, const std::string& error) {
    errors_.push_back({invocation.policy.get(),
                       "policy '" + invocation.policy->name + "' with binding '" + invocation.binding->name +
                           "' denied request: " + error,
                       true});
  }

  Awaitable<void> Select(const PolicyHook& hook, std::vector<Invocation>& invocations) {
    const Policy& policy = *hook.policy;
    auto matched = co_await matcher_.Match(policy.criteria);
    if (!matched.ok()) {
      ConfigurationError(policy, nullptr, std::string(matched.error().message()));
      co_return;
    }
    if (!*matched) co_return;
    if (const std::string error = ParamKindError(api_, policy); !error.empty()) {
      ConfigurationError(policy, nullptr, error);
      co_return;
    }
    for (const auto& binding : hook.bindings) {
      if (binding->criteria) {
        auto own = co_await matcher_.Match(*binding->criteria);
        if (!own.ok()) ConfigurationError(policy, binding.get(), std::string(own.error().message()));
        if (!own.ok() || !*own) continue;
      }
      auto params = co_await CollectParams(api_, context_.arena, policy, *binding, attributes_.name_space);
      if (!params.ok()) {
        ConfigurationError(policy, binding.get(), params.error());
        continue;
      }
      for (const Value param : *params) invocations.push_back({hook.policy, binding, **matched, param});
    }
  }

  Task<void> Invoke(const Invocation& invocation) {
    base::Arena& arena = context_.arena;
    const Policy& policy = *invocation.policy;
    cel::AdmissionInputs inputs{.authorizer = &authorizer_,
                                .request_resource = RequestResource(attributes_),
                                .time_zones = dependencies_.time_zones,
                                .interrupt = &interrupt_};
    KS_CO_RETURN_IF_ERROR(co_await ReadObjects(invocation, inputs));
    const cel::MutatingPolicyProgram& program = *policy.mutating;
    if (program.has_match_conditions()) {
      const std::function<cel::MatchResult()> match = [&] { return program.Match(arena, inputs); };
      const cel::MatchResult conditions = co_await EvaluateConditions(match, authorizer_, attributes_.operation,
                                                                      dependencies_.ConditionsObserverOf(policy));
      if (!conditions.error.empty()) Failure(invocation, conditions.error);
      if (!conditions.matches) co_return meta::Result<void>();
    }
    const std::string key = invocation.Key();
    if (attributes_.reinvocation->is_reinvoke() && !state_.reinvoke.contains(key)) co_return meta::Result<void>();
    const Value before = attributes_.object;
    for (std::size_t i = 0; i < program.mutation_count(); ++i) {
      if (inputs.object.is_null()) continue;
      const auto began = std::chrono::steady_clock::now();
      const auto mutation = co_await Mutate(invocation, i, inputs);
      if (dependencies_.metrics != nullptr) {
        dependencies_.metrics->Mutated(policy.name, invocation.binding->name,
                                       mutation.ok() ? mutation->error : mutation.error().message(),
                                       std::chrono::steady_clock::now() - began);
      }
      if (!mutation.ok()) co_return mutation.error();
      if (!mutation->error.empty()) Failure(invocation, mutation->error);
      if (mutation->changed) KS_CO_RETURN_IF_ERROR(co_await ReadObjects(invocation, inputs));
    }
    if (!(before == attributes_.object)) {
      state_.RequirePreviouslyInvoked();
      attributes_.reinvocation->RequestReinvoke();
    }
    if (policy.reinvoke) state_.previously_invoked.insert(key);
    co_return meta::Result<void>();
  }

  // Only errors that end the request are returned.
  Task<Mutation> Mutate(const Invocation& invocation, std::size_t index, const cel::AdmissionInputs& inputs) {
    base::Arena& arena = context_.arena;
    const cel::MutatingPolicyProgram& program = *invocation.policy->mutating;
    if (patched_bytes_ > kPatchedBytesTotalMax) co_return Mutation{.error = "too many mutations of a large object"};
    cel::PolicyPatch patch = program.Evaluate(arena, index, inputs);
    while (patch.pending && co_await authorizer_.Fetch()) patch = program.Evaluate(arena, index, inputs);
    const auto merge = [&](Value configuration) {
      return merger_->MergeConfiguration(arena, inputs.object, configuration, invocation.matched.kind);
    };
    const auto patched = ApplyPolicyPatch(arena, patch, inputs.object, merge, patched_bytes_);
    if (!patched.ok()) co_return Mutation{.error = patched.error()};
    if (!*patched) co_return Mutation();
    const Value document = **patched;
    const meta::GroupVersionKind& matched = invocation.matched.kind;
    if (matched != attributes_.kind && codec::RegisteredType(matched) != nullptr) {
      // Upstream cannot take the change back to the requested version.
      co_return Mutation{.error = "converting (" + matched.version + "." + matched.kind + ") to (" +
                                  attributes_.kind.version + "." + attributes_.kind.kind + "): unknown conversion"};
    }
    if (patch.type == cel::PatchType::kJSONPatch) {  // Upstream decodes a patched document strictly.
      KS_CO_TRY(attributes_.object, co_await merger_->FromDocumentStrictly(arena, document, matched));
    } else {
      KS_CO_TRY(attributes_.object, co_await attributes_.interfaces->FromDocument(arena, document, matched));
    }
    co_return Mutation{.changed = true};
  }

  Task<void> ReadObjects(const Invocation& invocation, cel::AdmissionInputs& inputs) {
    base::Arena& arena = context_.arena;
    const meta::GroupVersionKind& kind = invocation.matched.kind;
    inputs.object = Value();
    if (!attributes_.object.is_null()) {
      KS_CO_TRY(inputs.object, co_await attributes_.interfaces->ToDocument(arena, attributes_.object, kind));
    }
    if (!attributes_.old_object.is_null() && inputs.old_object.is_null()) {
      KS_CO_TRY(inputs.old_object, co_await attributes_.interfaces->ToDocument(arena, attributes_.old_object, kind));
    }
    inputs.request = RequestValue(arena, context_, attributes_, invocation.matched);
    inputs.namespace_object = namespace_;
    inputs.params = invocation.params;
    co_return meta::Result<void>();
  }

  Task<void> ReadNamespace() {
    const bool is_namespace = attributes_.kind.group.empty() && attributes_.kind.kind == "Namespace";
    if (attributes_.name_space.empty() || is_namespace) co_return meta::Result<void>();
    KS_CO_TRY(const Value found, co_await matcher_.Namespace());
    namespace_ = NamespaceValue(context_.arena, found);
    co_return meta::Result<void>();
  }

  meta::Result<void> Refusal() const {
    std::vector<const PolicyError*> counted;
    for (const PolicyError& error : errors_) {
      if (!error.policy->fail_open) counted.push_back(&error);
    }
    if (counted.empty()) return {};
    meta::Status::Fields fields = NewForbidden(attributes_, "").fields();
    fields.message = counted.front()->text;
    if (counted.front()->invalid) fields.reason = meta::StatusReason::kInvalid;
    if (!fields.details) fields.details.emplace();
    for (const PolicyError* error : counted) fields.details->causes.push_back({.reason = "", .message = error->text});
    return meta::Status(std::move(fields));
  }

  const PolicyDependencies& dependencies_;
  APIReader& api_;
  request::Context& context_;
  Attributes& attributes_;
  ReinvocationState& state_;
  Matcher matcher_;
  CachingAuthorizer authorizer_;
  RequestInterrupt interrupt_;
  const ConfigurationMerger* merger_;
  Value namespace_;
  std::vector<PolicyError> errors_;
  std::size_t patched_bytes_ = 0;  // of kPatchedBytesTotalMax
};

class MutatingPolicies final : public PolicyPlugin {
 public:
  explicit MutatingPolicies(const PluginContext& context)
      : PolicyPlugin(context, kName, PolicyForm::kMutating, "mutatingadmissionpolicies",
                     "mutatingadmissionpolicybindings") {}

  std::string_view name() const override { return kName; }

  Task<void> Admit(request::Context& context, Attributes& attributes) override {
    const auto list = PoliciesFor(attributes);
    if (list->hooks.empty()) co_return meta::Result<void>();
    Dispatch dispatch(dependencies(), context, attributes, attributes.reinvocation->State<ReinvocationState>(kName));
    co_return co_await dispatch.Run(*list);
  }
};

}  // namespace

std::unique_ptr<Plugin> NewMutatingAdmissionPolicy(const PluginContext& context) {
  return std::make_unique<MutatingPolicies>(context);
}

}  // namespace keelson::admission
