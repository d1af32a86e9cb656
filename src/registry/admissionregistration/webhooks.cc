// ValidatingWebhookConfiguration and MutatingWebhookConfiguration.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "registry/admissionregistration/match.h"
#include "registry/admissionregistration/strategies.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"
#include "registry/rules/webhook.h"
#include "registry/semantic.h"
#include "schema/schema.h"
#include "schema/types.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Invalid;
using validation::Required;

constexpr std::int64_t kTimeoutSecondsDefault = 10;
constexpr std::int64_t kTimeoutSecondsMax = 30;

template <bool kMutating>
void SetDefaults(base::Arena& arena, Value object) {
  for (Value hook : object["webhooks"].items()) {
    Default(arena, hook, "failurePolicy", "Fail");
    Default(arena, hook, "matchPolicy", "Equivalent");
    Default(arena, hook, "namespaceSelector", Value::Map(arena));
    Default(arena, hook, "objectSelector", Value::Map(arena));
    Default(arena, hook, "timeoutSeconds", kTimeoutSecondsDefault);
    if constexpr (kMutating) Default(arena, hook, "reinvocationPolicy", "Never");
    match::DefaultRules(arena, hook["rules"]);
    if (Value service = hook["clientConfig"]["service"]; service.is_map()) Default(arena, service, "port", 443);
  }
}

void PrepareForCreate(const Call& call, Value object, Value) {
  object.EnsureMap(call.arena, "metadata").Set(call.arena, "generation", 1);
}

template <bool kMutating>
void PrepareForUpdate(const Call& call, Value object, Value old) {
  namespace types = schema::types::admissionregistration_v1;
  static const schema::Type& hooks =
      *(kMutating ? types::kMutatingWebhookConfiguration : types::kValidatingWebhookConfiguration)
           .FindField("webhooks")
           ->type;
  if (DeepEqual(object["webhooks"], old["webhooks"], hooks)) return;
  object.EnsureMap(call.arena, "metadata").Set(call.arena, "generation", old["metadata"]["generation"].as_int() + 1);
}

// Ratcheting: rules that are not applied to unchanged parts of an old object.
struct Options {
  bool ignore_match_conditions = false;
  bool require_no_side_effects = true;
  bool require_recognized_version = true;
  bool require_unique_names = true;
  bool allow_invalid_values = false;
};

Options OptionsFor(const Value& object, const Value& old) {
  Options options;
  const auto hooks = object["webhooks"].items();
  const auto old_hooks = old["webhooks"].items();
  options.ignore_match_conditions = hooks.size() == old_hooks.size();
  for (std::size_t i = 0; i < old_hooks.size() && options.ignore_match_conditions; ++i) {
    options.ignore_match_conditions = SemanticEqual(hooks[i]["matchConditions"], old_hooks[i]["matchConditions"]);
  }
  std::set<std::string_view> names;
  for (const Value& hook : old_hooks) {
    if (!OneOf(hook["sideEffects"].as_string(), {"None", "NoneOnDryRun"})) options.require_no_side_effects = false;
    const Value versions = hook["admissionReviewVersions"];
    const bool recognized = std::ranges::any_of(
        versions.items(), [](const Value& version) { return IsAcceptedReviewVersion(version.as_string()); });
    if (!recognized && !versions.empty()) options.require_recognized_version = false;
    if (!names.insert(hook["name"].as_string()).second) options.require_unique_names = false;
    if (IsInvalidSelector(hook["namespaceSelector"]) || IsInvalidSelector(hook["objectSelector"]))
      options.allow_invalid_values = true;
  }
  return options;
}

void ValidateSideEffects(const Value& effects, const Options& options, const FieldPath& path, FieldErrors& errors) {
  if (options.require_no_side_effects) {
    if (effects.is_null()) {
      errors.push_back(Required(path, "must specify one of None, NoneOnDryRun"));
    } else {
      CheckOneOf(effects.as_string(), {"None", "NoneOnDryRun"}, path, errors);
    }
  } else if (effects.is_null()) {
    errors.push_back(Required(path, "must specify one of None, NoneOnDryRun, Some, Unknown"));
  } else {
    CheckOneOf(effects.as_string(), {"None", "NoneOnDryRun", "Some", "Unknown"}, path, errors);
  }
}

void ValidateHook(const Value& hook, bool mutating, const Options& options, const FieldPath& path,
                  FieldErrors& errors) {
  validation::ValidateFullyQualifiedName(hook["name"].as_string(), path.Child("name"), errors);
  const FieldPath rules_path = path.Child("rules");
  std::int64_t index = 0;
  for (const Value& rule : hook["rules"].items())
    match::ValidateRuleWithOperations(rule, rules_path.Index(index++), errors);
  if (const Value policy = hook["failurePolicy"]; !policy.is_null()) {
    CheckOneOf(policy.as_string(), {"Fail", "Ignore"}, path.Child("failurePolicy"), errors);
  }
  if (const Value policy = hook["matchPolicy"]; !policy.is_null()) {
    CheckOneOf(policy.as_string(), {"Equivalent", "Exact"}, path.Child("matchPolicy"), errors);
  }
  ValidateSideEffects(hook["sideEffects"], options, path.Child("sideEffects"), errors);
  if (const Value timeout = hook["timeoutSeconds"];
      !timeout.is_null() && (timeout.as_int() > kTimeoutSecondsMax || timeout.as_int() < 1)) {
    errors.push_back(
        Invalid(path.Child("timeoutSeconds"), timeout, "the timeout value must be between 1 and 30 seconds"));
  }
  for (const std::string_view selector : {"namespaceSelector", "objectSelector"}) {
    if (!hook[selector].is_null()) {
      validation::ValidateLabelSelector(hook[selector], path.Child(selector), errors, options.allow_invalid_values);
    }
  }
  if (const Value policy = hook["reinvocationPolicy"]; mutating && !policy.is_null()) {
    CheckOneOf(policy.as_string(), {"IfNeeded", "Never"}, path.Child("reinvocationPolicy"), errors);
  }
  ValidateWebhookClientConfig(hook["clientConfig"], path.Child("clientConfig"), errors);
  if (!options.ignore_match_conditions)
    match::ValidateMatchConditions(hook["matchConditions"], false, path.Child("matchConditions"), errors);
}

void ValidateHooks(const Value& object, bool mutating, const Options& options, FieldErrors& errors) {
  const FieldPath path("webhooks");
  std::set<std::string_view> names;
  std::int64_t index = 0;
  for (const Value& hook : object["webhooks"].items()) {
    const FieldPath at = path.Index(index++);
    ValidateHook(hook, mutating, options, at, errors);
    ValidateReviewVersions(hook["admissionReviewVersions"], "must specify one of v1, v1beta1",
                           options.require_recognized_version, at.Child("admissionReviewVersions"), errors);
    const std::string_view name = hook["name"].as_string();
    if (options.require_unique_names && !name.empty() && !names.insert(name).second) {
      errors.push_back(Duplicate(at.Child("name"), Value(name)));
    }
  }
}

template <bool kMutating>
void ValidateConfiguration(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateHooks(object, kMutating, Options(), errors);
}

template <bool kMutating>
void ValidateConfigurationUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors, false);
  ValidateHooks(object, kMutating, OptionsFor(object, old), errors);
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  cells.Append(arena, static_cast<std::int64_t>(object["webhooks"].size()));
  cells.Append(arena, Age(arena, clock, object));
}

template <bool kMutating>
constexpr Strategy MakeStrategy(std::string_view kind) {
  return {
      .group = "admissionregistration.k8s.io",
      .kind = kind,
      .allow_unconditional_update = false,
      .core_finalizers = false,
      .generation = Generation::kCustom,
      .defaults = SetDefaults<kMutating>,
      .prepare_for_create = PrepareForCreate,
      .validate = match::ValidateCreate<ValidateConfiguration<kMutating>>,
      .warnings_on_create = match::WarnAboutStaticSuffixOnCreate,
      .update = {.prepare_for_update = PrepareForUpdate<kMutating>,
                 .validate_update = ValidateConfigurationUpdate<kMutating>,
                 .warnings_on_update = match::WarnAboutStaticSuffix},
      .table_row = Row,
  };
}

}  // namespace

constexpr Strategy kValidatingWebhookConfigurationStrategy = MakeStrategy<false>("ValidatingWebhookConfiguration");
constexpr Strategy kMutatingWebhookConfigurationStrategy = MakeStrategy<true>("MutatingWebhookConfiguration");

}  // namespace keelson::registry
