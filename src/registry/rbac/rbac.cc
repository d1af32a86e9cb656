#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "registry/rbac/strategies.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Invalid;
using validation::Required;

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

// Any path segment; a generateName prefix is checked unchanged.
Messages RBACName(std::string_view name, bool) { return validation::IsValidPathSegmentName(name); }

void SetBindingDefaults(base::Arena& arena, Value object) {
  DefaultIfZero(arena, object.EnsureMap(arena, "roleRef"), "apiGroup", kGroup);
  for (Value subject : object["subjects"].items()) {
    const std::string_view kind = subject["kind"].as_string();
    if (kind == "User" || kind == "Group") DefaultIfZero(arena, subject, "apiGroup", kGroup);
  }
}

void ValidatePolicyRule(const Value& rule, bool namespaced, const FieldPath& path, FieldErrors& errors) {
  if (rule["verbs"].empty()) errors.push_back(Required(path.Child("verbs"), "verbs must contain at least one value"));
  if (const Value urls = rule["nonResourceURLs"]; !urls.empty()) {
    const FieldPath at = path.Child("nonResourceURLs");
    if (namespaced) errors.push_back(Invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"));
    if (!rule["apiGroups"].empty() || !rule["resources"].empty() || !rule["resourceNames"].empty()) {
      errors.push_back(Invalid(at, urls, "rules cannot apply to both regular resources and non-resource URLs"));
    }
    return;
  }
  if (rule["apiGroups"].empty())
    errors.push_back(Required(path.Child("apiGroups"), "resource rules must supply at least one api group"));
  if (rule["resources"].empty())
    errors.push_back(Required(path.Child("resources"), "resource rules must supply at least one resource"));
}

void ValidateRules(const Value& object, bool namespaced, FieldErrors& errors) {
  const FieldPath rules_path("rules");
  std::int64_t index = 0;
  for (const Value& rule : object["rules"].items())
    ValidatePolicyRule(rule, namespaced, rules_path.Index(index++), errors);
}

void ValidateAggregationRule(const Value& object, bool allow_invalid_values, FieldErrors& errors) {
  const Value aggregation = object["aggregationRule"];
  if (aggregation.is_null()) return;
  const FieldPath parent("aggregationRule");
  const FieldPath path = parent.Child("clusterRoleSelectors");
  const Value selectors = aggregation["clusterRoleSelectors"];
  if (selectors.empty())
    errors.push_back(Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"));
  std::int64_t index = 0;
  for (const Value& selector : selectors.items()) {
    const FieldPath at = path.Index(index++);
    validation::ValidateLabelSelector(selector, at, errors, allow_invalid_values);
    // Upstream also builds the selector, which the strict rules decide, and shows the one that was not built.
    if (IsInvalidSelector(selector)) errors.push_back(Invalid(at, Value(), "invalid label selector."));
  }
}

void ValidateSubject(const Value& subject, bool namespaced, const FieldPath& path, FieldErrors& errors) {
  const std::string_view name = subject["name"].as_string();
  const std::string_view kind = subject["kind"].as_string();
  const std::string_view group = subject["apiGroup"].as_string();
  if (name.empty()) errors.push_back(Required(path.Child("name")));
  if (kind == "ServiceAccount") {
    if (!name.empty()) AddInvalid(path.Child("name"), name, validation::NameIsDNSSubdomain(name, false), errors);
    if (!group.empty()) NotSupportedValue(path.Child("apiGroup"), group, {""}, errors);
    if (!namespaced && subject["namespace"].as_string().empty()) errors.push_back(Required(path.Child("namespace")));
  } else if (kind == "User" || kind == "Group") {
    CheckOneOf(group, {kGroup}, path.Child("apiGroup"), errors);
  } else {
    NotSupportedValue(path.Child("kind"), kind, {"ServiceAccount", "User", "Group"}, errors);
  }
}

void ValidateBindingBody(const Value& object, bool namespaced, FieldErrors& errors) {
  const FieldPath ref_path("roleRef");
  const Value ref = object["roleRef"];
  CheckOneOf(ref["apiGroup"].as_string(), {kGroup}, ref_path.Child("apiGroup"), errors);
  if (namespaced) {
    CheckOneOf(ref["kind"].as_string(), {"Role", "ClusterRole"}, ref_path.Child("kind"), errors);
  } else {
    CheckOneOf(ref["kind"].as_string(), {"ClusterRole"}, ref_path.Child("kind"), errors);
  }
  const std::string_view name = ref["name"].as_string();
  if (name.empty()) {
    errors.push_back(Required(ref_path.Child("name")));
  } else {
    AddInvalid(ref_path.Child("name"), name, RBACName(name, false), errors);
  }
  const FieldPath subjects_path("subjects");
  std::int64_t index = 0;
  for (const Value& subject : object["subjects"].items())
    ValidateSubject(subject, namespaced, subjects_path.Index(index++), errors);
}

template <bool kNamespaced>
void ValidateRole(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateRules(object, kNamespaced, errors);
  if constexpr (!kNamespaced) ValidateAggregationRule(object, false, errors);
}

bool HasInvalidSelector(const Value& role) {
  return std::ranges::any_of(role["aggregationRule"]["clusterRoleSelectors"].items(), IsInvalidSelector);
}

template <bool kNamespaced>
void ValidateRoleUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, kNamespaced, RBACName, errors);
  ValidateRules(object, kNamespaced, errors);
  if constexpr (!kNamespaced) ValidateAggregationRule(object, HasInvalidSelector(old), errors);
  ValidateMetaUpdate(object, old, errors);
}

template <bool kNamespaced>
void ValidateBinding(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateBindingBody(object, kNamespaced, errors);
}

constexpr GoField kRoleRef[] = {{"apiGroup", "APIGroup"}, {"kind", "Kind"}, {"name", "Name"}};

template <bool kNamespaced>
void ValidateBindingUpdate(const Call&, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, kNamespaced, RBACName, errors);
  ValidateBindingBody(object, kNamespaced, errors);
  ValidateMetaUpdate(object, old, errors);
  if (!SemanticEqual(object["roleRef"], old["roleRef"])) {
    errors.push_back(
        InvalidRendered(FieldPath("roleRef"), RenderGoStruct(object["roleRef"], kRoleRef), "cannot change roleRef"));
  }
}

std::string SubjectNames(const Value& object, std::string_view kind) {
  std::vector<std::string> names;
  for (const Value& subject : object["subjects"].items()) {
    if (subject["kind"].as_string() != kind) continue;
    std::string name(subject["name"].as_string());
    if (kind == "ServiceAccount") name = std::string(subject["namespace"].as_string()) + "/" + name;
    names.push_back(std::move(name));
  }
  return base::Join(names, ", ");
}

void BindingRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  cells.Append(arena, NameCell(object));
  const Value ref = object["roleRef"];
  cells.Append(arena,
               Value::String(arena, std::string(ref["kind"].as_string()) + "/" + std::string(ref["name"].as_string())));
  cells.Append(arena, Age(arena, clock, object));
  for (const std::string_view kind : {"User", "Group", "ServiceAccount"})
    cells.Append(arena, Value::String(arena, SubjectNames(object, kind)));
}

constexpr Strategy kStrategies[] = {
    {
        .group = kGroup,
        .kind = "Role",
        .name_rule = RBACName,
        .allow_create_on_update = true,
        .validate = ValidateRole<true>,
        .update = {.validate_update = ValidateRoleUpdate<true>},
    },
    {
        .group = kGroup,
        .kind = "ClusterRole",
        .name_rule = RBACName,
        .allow_create_on_update = true,
        .validate = ValidateRole<false>,
        .update = {.validate_update = ValidateRoleUpdate<false>},
    },
    {
        .group = kGroup,
        .kind = "RoleBinding",
        .name_rule = RBACName,
        .allow_create_on_update = true,
        .defaults = SetBindingDefaults,
        .validate = ValidateBinding<true>,
        .update = {.validate_update = ValidateBindingUpdate<true>},
        .table_row = BindingRow,
    },
    {
        .group = kGroup,
        .kind = "ClusterRoleBinding",
        .name_rule = RBACName,
        .allow_create_on_update = true,
        .defaults = SetBindingDefaults,
        .validate = ValidateBinding<false>,
        .update = {.validate_update = ValidateBindingUpdate<false>},
        .table_row = BindingRow,
    },
};

}  // namespace

std::span<const Strategy> RBACStrategies() { return kStrategies; }

}  // namespace keelson::registry
