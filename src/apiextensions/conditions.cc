#include "apiextensions/conditions.h"

#include <algorithm>

#include "base/strings.h"
#include "registry/apiextensions/schema_rules.h"
#include "validation/primitives.h"

namespace keelson::apiextensions {
namespace {

constexpr std::string_view kApprovalAnnotation = "api-approved.kubernetes.io";
constexpr std::string_view kConformant = "KubernetesAPIApprovalPolicyConformant";
constexpr std::string_view kSee = ", see https://github.com/kubernetes/enhancements/pull/1111";

bool IsProtected(std::string_view group) {
  return group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" ||
         group.ends_with(".kubernetes.io");
}

Condition Approval(std::string_view annotation) {
  const std::string must = "protected groups must have approval annotation " + base::GoQuote(kApprovalAnnotation);
  if (annotation.empty()) return {kConformant, "False", "MissingAnnotation", must + std::string(kSee)};
  if (annotation.starts_with("unapproved"))
    return {kConformant, "False", "UnapprovedAnnotation", "not approved: " + base::GoQuote(annotation)};
  const std::size_t scheme = annotation.find("://");
  if (scheme != std::string_view::npos && scheme > 0 && scheme + 3 < annotation.size() && annotation[scheme + 3] != '/')
    return {kConformant, "True", "ApprovedAnnotation", "approved in " + std::string(annotation)};
  return {kConformant, "False", "InvalidAnnotation",
          must + " with either a URL or a reason starting with \"unapproved\"" + std::string(kSee)};
}

// Copies the requested name into `accepted` unless another definition has it; returns the conflict's message.
std::string AcceptOne(base::Arena& arena, const Value& requested, Value accepted, std::string_view key,
                      bool (GroupNames::*uses)(std::string_view) const, const GroupNames& used) {
  const std::string_view name = requested[key].as_string();
  if (name != accepted[key].as_string() && (used.*uses)(name)) return base::GoQuote(name) + " is already in use";
  if (requested.Has(key)) {
    accepted.Set(arena, key, requested[key]);
  } else {
    accepted.Erase(key);
  }
  return {};
}

std::string AcceptShortNames(base::Arena& arena, const Value& requested, Value accepted, const GroupNames& used) {
  std::vector<std::string> conflicts;
  const Value own = accepted["shortNames"];
  for (const Value& name : requested["shortNames"].items()) {
    const bool ours = std::ranges::any_of(own.items(), [&](const Value& one) { return one == name; });
    if (!ours && used.HasResource(name.as_string()))
      conflicts.push_back(base::GoQuote(name.as_string()) + " is already in use");
  }
  if (conflicts.size() == 1) return conflicts.front();
  if (!conflicts.empty()) return "[" + base::Join(conflicts, ", ") + "]";
  if (requested.Has("shortNames")) {
    accepted.Set(arena, "shortNames", requested["shortNames"]);
  } else {
    accepted.Erase("shortNames");
  }
  return {};
}

}  // namespace

bool SetCondition(base::Arena& arena, Value definition, const Condition& condition, std::string_view now) {
  Value conditions = definition.EnsureMap(arena, "status").EnsureList(arena, "conditions");
  Value found;
  for (const Value& one : conditions.items()) {
    if (one["type"].as_string() == condition.type) found = one;
  }
  if (found.is_null()) {
    found = Value::Map(arena);
    found.Set(arena, "type", Value::String(arena, condition.type));
    conditions.Append(arena, found);
  } else if (found["status"].as_string() == condition.status && found["reason"].as_string() == condition.reason &&
             found["message"].as_string() == condition.message) {
    return false;
  }
  if (found["status"].as_string() != condition.status || !found["lastTransitionTime"].is_string())
    found.Set(arena, "lastTransitionTime", now);
  found.Set(arena, "status", Value::String(arena, condition.status));
  found.Set(arena, "reason", Value::String(arena, condition.reason));
  found.Set(arena, "message", Value::String(arena, condition.message));
  return true;
}

bool RemoveCondition(base::Arena& arena, Value definition, std::string_view type) {
  (void)arena;
  Value conditions = definition["status"]["conditions"];
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions[i]["type"].as_string() != type) continue;
    conditions.Remove(i);
    return true;
  }
  return false;
}

void GroupNames::Count(Uses& uses, const std::string& name, int by) {
  const auto found = uses.try_emplace(name, 0).first;
  found->second += by;
  if (found->second == 0) uses.erase(found);
}

void GroupNames::Count(const Names& names, int by) {
  for (const std::string* name : {&names.plural, &names.singular}) Count(resources_, *name, by);
  for (const std::string& name : names.short_names) Count(resources_, name, by);
  for (const std::string* name : {&names.kind, &names.list_kind}) Count(kinds_, *name, by);
}

bool AcceptNames(base::Arena& arena, Value definition, const GroupNames& used, std::string_view now) {
  const Value requested = definition["spec"]["names"];
  Value accepted = definition.EnsureMap(arena, "status").EnsureMap(arena, "acceptedNames");
  if (requested == accepted) return false;
  const Value before = definition["status"].Clone(arena);
  Condition names{"NamesAccepted", "True", "NoConflicts", "no conflicts found"};
  const auto judge = [&](std::string_view reason, std::string problem) {
    if (!problem.empty()) names = {"NamesAccepted", "False", reason, std::move(problem)};
  };
  judge("PluralConflict", AcceptOne(arena, requested, accepted, "plural", &GroupNames::HasResource, used));
  judge("SingularConflict", AcceptOne(arena, requested, accepted, "singular", &GroupNames::HasResource, used));
  judge("ShortNamesConflict", AcceptShortNames(arena, requested, accepted, used));
  judge("KindConflict", AcceptOne(arena, requested, accepted, "kind", &GroupNames::HasKind, used));
  judge("ListKindConflict", AcceptOne(arena, requested, accepted, "listKind", &GroupNames::HasKind, used));
  if (requested.Has("categories")) {
    accepted.Set(arena, "categories", requested["categories"]);
  } else {
    accepted.Erase("categories");
  }
  SetCondition(arena, definition, names, now);
  const Value established = FindCondition(definition, "Established");
  if (established["status"].as_string() != "True") {
    if (names.status == "True") {
      SetCondition(arena, definition, {"Established", "False", "Installing", "the initial names have been accepted"},
                   now);
    } else if (established.is_null()) {
      SetCondition(arena, definition, {"Established", "False", "NotAccepted", "not all names are accepted"}, now);
    }
  }
  return !(before == definition["status"]);
}

bool CheckApproval(base::Arena& arena, Value definition, std::string_view now) {
  if (!IsProtected(definition["spec"]["group"].as_string())) return RemoveCondition(arena, definition, kConformant);
  return SetCondition(arena, definition,
                      Approval(definition["metadata"]["annotations"][kApprovalAnnotation].as_string()), now);
}

bool CheckStructural(base::Arena& arena, Value definition, std::string_view now) {
  constexpr std::string_view kType = "NonStructuralSchema";
  const Value spec = definition["spec"];
  if (!spec["preserveUnknownFields"].as_bool()) return RemoveCondition(arena, definition, kType);
  meta::FieldErrors errors;
  const FieldPath path("spec");
  const FieldPath versions = path.Child("versions");
  errors.push_back(validation::Invalid(path.Child("preserveUnknownFields"), Value(true), "must be false"));
  std::size_t index = 0;
  for (const Value& version : spec["versions"].items()) {
    const FieldPath at = versions.Index(index++);
    const Value schema = version["schema"]["openAPIV3Schema"];
    if (!schema.is_map()) continue;
    registry::crd::ValidateStructural(schema, at.Child("schema").Child("openAPIV3Schema"), errors);
  }
  return SetCondition(arena, definition, {kType, "True", "Violations", meta::AggregateMessage(errors)}, now);
}

bool RemoveFinalizer(base::Arena& arena, Value definition) {
  (void)arena;
  Value finalizers = definition["metadata"]["finalizers"];
  for (std::size_t i = 0; i < finalizers.size(); ++i) {
    if (finalizers[i].as_string() != kCleanupFinalizer) continue;
    finalizers.Remove(i);
    if (finalizers.empty()) definition["metadata"].Erase("finalizers");
    return true;
  }
  return false;
}

}  // namespace keelson::apiextensions
