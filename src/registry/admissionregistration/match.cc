#include "registry/admissionregistration/match.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "registry/rules/cel_expression.h"
#include "registry/rules/rules.h"

namespace keelson::registry::match {
namespace {

using namespace rules;  // NOLINT
using validation::Duplicate;
using validation::Invalid;
using validation::Required;

constexpr std::int64_t kMatchConditionsMax = 64;
constexpr std::string_view kStaticSuffix = ".static.k8s.io";
constexpr std::string_view kManifestGate = "ManifestBasedAdmissionControlConfig";

std::string ReservedText() {
  return "names ending with " + base::GoQuote(kStaticSuffix) +
         " are reserved for static manifest-based configurations and cannot be managed via the API";
}

bool HasWildcard(const Value& list) {
  return std::ranges::any_of(list.items(), [](const Value& item) { return item.as_string() == "*"; });
}

void ValidateResources(const Value& resources, const FieldPath& path, FieldErrors& errors) {
  if (resources.empty()) errors.push_back(Required(path));
  std::set<std::string_view> any_subresource;
  std::set<std::string_view> any_resource;
  bool double_wildcard = false;
  bool single_wildcard = false;
  bool plain_resource = false;
  std::int64_t index = 0;
  for (const Value& item : resources.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view text = item.as_string();
    if (text.empty()) {
      errors.push_back(Required(at));
      continue;
    }
    double_wildcard = double_wildcard || text == "*/*";
    single_wildcard = single_wildcard || text == "*";
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) {
      plain_resource = text != "*";  // The last one decides, as upstream.
      continue;
    }
    const std::string resource(text.substr(0, slash));
    const std::string subresource(text.substr(slash + 1));
    if (any_subresource.contains(text.substr(0, slash))) {
      errors.push_back(Invalid(at, text, "if '" + resource + "/*' is present, must not specify " + std::string(text)));
    }
    if (any_resource.contains(text.substr(slash + 1))) {
      errors.push_back(
          Invalid(at, text, "if '*/" + subresource + "' is present, must not specify " + std::string(text)));
    }
    if (subresource == "*") any_subresource.insert(text.substr(0, slash));
    if (resource == "*") any_resource.insert(text.substr(slash + 1));
  }
  if (resources.size() > 1 && double_wildcard)
    errors.push_back(Invalid(path, resources, "if '*/*' is present, must not specify other resources"));
  if (single_wildcard && plain_resource) {
    errors.push_back(
        Invalid(path, resources, "if '*' is present, must not specify other resources without subresources"));
  }
}

void ValidateRule(const Value& rule, const FieldPath& path, FieldErrors& errors) {
  const Value groups = rule["apiGroups"];
  if (groups.empty()) errors.push_back(Required(path.Child("apiGroups")));
  if (groups.size() > 1 && HasWildcard(groups)) {
    errors.push_back(Invalid(path.Child("apiGroups"), groups, "if '*' is present, must not specify other API groups"));
  }
  const Value versions = rule["apiVersions"];
  const FieldPath versions_path = path.Child("apiVersions");
  if (versions.empty()) errors.push_back(Required(versions_path));
  if (versions.size() > 1 && HasWildcard(versions)) {
    errors.push_back(Invalid(versions_path, versions, "if '*' is present, must not specify other API versions"));
  }
  std::int64_t index = 0;
  for (const Value& version : versions.items()) {
    const FieldPath at = versions_path.Index(index++);
    if (version.as_string().empty()) errors.push_back(Required(at));
  }
  ValidateResources(rule["resources"], path.Child("resources"), errors);
  if (const Value scope = rule["scope"]; !scope.is_null()) {
    CheckOneOf(scope.as_string(), {"*", "Cluster", "Namespaced"}, path.Child("scope"), errors);
  }
}

void ValidateNamedRule(const Value& rule, const FieldPath& path, FieldErrors& errors) {
  const FieldPath names_path = path.Child("resourceNames");
  std::set<std::string_view> names;
  std::int64_t index = 0;
  for (const Value& item : rule["resourceNames"].items()) {
    const FieldPath at = names_path.Index(index++);
    AddInvalid(at, item.as_string(), validation::IsValidPathSegmentName(item.as_string()), errors);
    if (!names.insert(item.as_string()).second) errors.push_back(Duplicate(at, item));
  }
  ValidateRuleWithOperations(rule, path, errors);
}

void RequireSelector(const Value& selector, const FieldPath& path, FieldErrors& errors) {
  if (selector.is_null()) {
    errors.push_back(Required(path));
  } else {
    validation::ValidateLabelSelector(selector, path, errors);
  }
}

}  // namespace

void DefaultRules(base::Arena& arena, const Value& rules) {
  for (Value rule : rules.items()) Default(arena, rule, "scope", "*");
}

void DefaultMatchResources(base::Arena& arena, Value resources) {
  if (!resources.is_map()) return;
  Default(arena, resources, "matchPolicy", "Equivalent");
  Default(arena, resources, "namespaceSelector", Value::Map(arena));
  Default(arena, resources, "objectSelector", Value::Map(arena));
  DefaultRules(arena, resources["resourceRules"]);
  DefaultRules(arena, resources["excludeResourceRules"]);
}

void ValidateRuleWithOperations(const Value& rule, const FieldPath& path, FieldErrors& errors) {
  const Value operations = rule["operations"];
  const FieldPath operations_path = path.Child("operations");
  if (operations.empty()) errors.push_back(Required(operations_path));
  if (operations.size() > 1 && HasWildcard(operations)) {
    errors.push_back(Invalid(operations_path, operations, "if '*' is present, must not specify other operations"));
  }
  std::int64_t index = 0;
  for (const Value& operation : operations.items()) {
    CheckOneOf(operation.as_string(), {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"}, operations_path.Index(index++),
               errors);
  }
  ValidateRule(rule, path, errors);
}

void ValidateMatchResources(const Value& resources, const FieldPath& path, FieldErrors& errors) {
  if (resources.is_null()) return;
  if (const Value policy = resources["matchPolicy"]; policy.is_null()) {
    errors.push_back(Required(path.Child("matchPolicy")));
  } else {
    CheckOneOf(policy.as_string(), {"Equivalent", "Exact"}, path.Child("matchPolicy"), errors);
  }
  RequireSelector(resources["namespaceSelector"], path.Child("namespaceSelector"), errors);
  RequireSelector(resources["objectSelector"], path.Child("objectSelector"), errors);
  for (const std::string_view field : {"resourceRules", "excludeResourceRules"}) {
    const FieldPath rules_path = path.Child(field);
    std::int64_t index = 0;
    for (const Value& rule : resources[field].items()) ValidateNamedRule(rule, rules_path.Index(index++), errors);
  }
}

void ValidateMatchConditions(const Value& conditions, bool params, const FieldPath& path, FieldErrors& errors) {
  const auto count = static_cast<std::int64_t>(conditions.size());
  if (count > kMatchConditionsMax) errors.push_back(validation::TooMany(path, count, kMatchConditionsMax));
  std::set<std::string_view> names;
  std::int64_t index = 0;
  for (const Value& condition : conditions.items()) {
    const FieldPath at = path.Index(index++);
    const std::string_view expression = base::Trim(condition["expression"].as_string());
    if (expression.empty()) {
      errors.push_back(Required(at.Child("expression")));
    } else {
      ValidateCELExpression(
          cel::AdmissionEnvironment(cel::ExpressionMode::kNew, {.params = params, .authorizer = true}), expression,
          {&cel::kBoolType}, at.Child("expression"), errors);
    }
    const std::string_view name = condition["name"].as_string();
    if (name.empty()) {
      errors.push_back(Required(at.Child("name")));
      continue;
    }
    CheckQualifiedName(name, at.Child("name"), errors);
    if (!names.insert(name).second) errors.push_back(Duplicate(at.Child("name"), Value(name)));
  }
}

void ValidateMutatingOperations(const Value& resources, const FieldPath& path, FieldErrors& errors) {
  const FieldPath rules_path = path.Child("resourceRules");
  const FieldPath at = rules_path.Child("operations");
  for (const Value& rule : resources["resourceRules"].items()) {
    for (const Value& operation : rule["operations"].items()) {
      CheckOneOf(operation.as_string(), {"*", "CONNECT", "CREATE", "UPDATE"}, at, errors);
    }
  }
}

void ValidateStaticSuffix(const Call& call, const Value& object, FieldErrors& errors) {
  const std::string_view name = object["metadata"]["name"].as_string();
  if (!name.ends_with(kStaticSuffix) || !FeatureEnabled(call, kManifestGate)) return;
  errors.push_back(Invalid(FieldPath("metadata").Child("name"), name, ReservedText()));
}

void WarnAboutStaticSuffixOnCreate(const Call& call, Value object, Value old) {
  if (!FeatureEnabled(call, kManifestGate)) WarnAboutStaticSuffix(call, object, old);
}

void WarnAboutStaticSuffix(const Call& call, Value object, Value) {
  if (object["metadata"]["name"].as_string().ends_with(kStaticSuffix))
    call.warnings.push_back("metadata.name: " + ReservedText());
}

}  // namespace keelson::registry::match
