// ValidatingAdmissionPolicyBinding and MutatingAdmissionPolicyBinding.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "registry/admissionregistration/match.h"
#include "registry/admissionregistration/strategies.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

void SetDefaults(base::Arena& arena, Value object) {
  match::DefaultMatchResources(arena, object["spec"]["matchResources"]);
}

void ValidateParamRef(const Value& reference, const FieldPath& path, FieldErrors& errors) {
  if (reference.is_null()) return;
  const std::string_view name = reference["name"].as_string();
  const Value selector = reference["selector"];
  constexpr std::string_view kExclusive = "name and selector are mutually exclusive";
  if (!name.empty()) {
    AddInvalid(path.Child("name"), name, validation::IsValidPathSegmentName(name), errors);
    if (!selector.is_null()) errors.push_back(Forbidden(path.Child("name"), kExclusive));
  }
  if (!selector.is_null()) {
    validation::ValidateLabelSelector(selector, path.Child("selector"), errors);
    if (!name.empty()) errors.push_back(Forbidden(path.Child("selector"), kExclusive));
  }
  if (name.empty() && selector.is_null()) errors.push_back(Required(path, "one of name or selector must be specified"));
  RequireOneOf(reference["parameterNotFoundAction"].as_string(), {"Deny", "Allow"},
               path.Child("parameterNotFoundAction"), errors);
}

void ValidateActions(const Value& actions, const FieldPath& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  std::int64_t index = 0;
  for (const Value& action : actions.items()) {
    const FieldPath at = path.Index(index++);
    CheckOneOf(action.as_string(), {"Audit", "Deny", "Warn"}, at, errors);
    if (!seen.insert(action.as_string()).second) errors.push_back(Duplicate(at, action));
  }
  if (seen.contains("Deny") && seen.contains("Warn")) {
    errors.push_back(Invalid(path, actions,
                             "must not contain both Deny and Warn (repeating the same validation failure information "
                             "in the API response and "
                             "headers serves no purpose)"));
  }
  if (seen.empty()) errors.push_back(Required(path, "at least one validation action is required"));
}

void ValidateSpec(const Value& object, bool mutating, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value spec = object["spec"];
  const std::string_view policy = spec["policyName"].as_string();
  if (policy.empty()) {
    errors.push_back(Required(path.Child("policyName")));
  } else {
    AddInvalid(path.Child("policyName"), policy, validation::NameIsDNSSubdomain(policy, false), errors);
  }
  ValidateParamRef(spec["paramRef"], path.Child("paramRef"), errors);
  const FieldPath resources = path.Child("matchResources");
  match::ValidateMatchResources(spec["matchResources"], resources, errors);
  if (mutating) {
    match::ValidateMutatingOperations(spec["matchResources"], resources, errors);
  } else {
    ValidateActions(spec["validationActions"], path.Child("validationActions"), errors);
  }
}

template <bool kMutating>
void ValidateBinding(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateSpec(object, kMutating, errors);
}

template <bool kMutating>
void ValidateBindingUpdate(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors, false);
  ValidateSpec(object, kMutating, errors);
}

// As Go's generated String() of metav1.LabelSelector writes it.
std::string SelectorText(const Value& selector) {
  std::vector<object::Member> labels(selector["matchLabels"].members().begin(),
                                     selector["matchLabels"].members().end());
  std::ranges::sort(labels, {}, &object::Member::key);
  std::string text = "&LabelSelector{MatchLabels:map[string]string{";
  for (const auto& label : labels) text += std::string(label.key) + ": " + std::string(label.value.as_string()) + ",";
  text += "},MatchExpressions:[]LabelSelectorRequirement{";
  for (const Value& expression : selector["matchExpressions"].items()) {
    text += "LabelSelectorRequirement{Key:" + std::string(expression["key"].as_string()) +
            ",Operator:" + std::string(expression["operator"].as_string()) + ",Values:[";
    bool first = true;
    for (const Value& value : expression["values"].items()) {
      text += (first ? "" : " ") + std::string(value.as_string());
      first = false;
    }
    text += "],},";
  }
  return text + "},}";
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value reference = object["spec"]["paramRef"];
  std::string parameter = "<unset>";
  if (const std::string_view name = reference["name"].as_string(); !name.empty()) {
    const std::string_view name_space = reference["namespace"].as_string();
    parameter = (name_space.empty() ? "*" : std::string(name_space)) + "/" + std::string(name);
  } else if (!reference["selector"].is_null()) {
    parameter = SelectorText(reference["selector"]);
  }
  cells.Append(arena, NameCell(object));
  cells.Append(arena, object["spec"]["policyName"].as_string());
  cells.Append(arena, Value::String(arena, parameter));
  cells.Append(arena, Age(arena, clock, object));
}

template <bool kMutating>
constexpr Strategy MakeStrategy(std::string_view kind) {
  return {
      .group = "admissionregistration.k8s.io",
      .kind = kind,
      .allow_unconditional_update = false,
      .core_finalizers = false,
      .generation = Generation::kSpec,
      .defaults = SetDefaults,
      .validate = match::ValidateCreate<ValidateBinding<kMutating>>,
      .warnings_on_create = match::WarnAboutStaticSuffixOnCreate,
      .update = {.validate_update = ValidateBindingUpdate<kMutating>,
                 .warnings_on_update = match::WarnAboutStaticSuffix},
      .table_row = Row,
  };
}

}  // namespace

constexpr Strategy kValidatingAdmissionPolicyBindingStrategy = MakeStrategy<false>("ValidatingAdmissionPolicyBinding");
constexpr Strategy kMutatingAdmissionPolicyBindingStrategy = MakeStrategy<true>("MutatingAdmissionPolicyBinding");

}  // namespace keelson::registry
