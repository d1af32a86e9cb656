#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "registry/flowcontrol/bootstrap.h"
#include "registry/flowcontrol/conditions.h"
#include "registry/flowcontrol/strategies.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"
#include "registry/rules/table.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Forbidden;
using validation::Invalid;
using validation::Required;
using Zero = GoField::Zero;

constexpr std::int64_t kDefaultMatchingPrecedence = 1000;
constexpr std::int64_t kMatchingPrecedenceMax = 10'000;
constexpr std::string_view kVerbs[] = {"create", "delete", "deletecollection", "get",  "list",
                                       "patch",  "proxy",  "update",           "watch"};

constexpr GoField kName[] = {{"name", "Name"}};
constexpr GoField kServiceAccount[] = {{"namespace", "Namespace"}, {"name", "Name"}};
constexpr GoField kMethod[] = {{"type", "Type"}};
constexpr GoField kSubject[] = {{"kind", "Kind"},
                                {"user", "User", Zero::kNull, kName},
                                {"group", "Group", Zero::kNull, kName},
                                {"serviceAccount", "ServiceAccount", Zero::kNull, kServiceAccount}};
constexpr GoField kResourceRule[] = {{"verbs", "Verbs", Zero::kNull},
                                     {"apiGroups", "APIGroups", Zero::kNull},
                                     {"resources", "Resources", Zero::kNull},
                                     {"clusterScope", "ClusterScope", Zero::kFalse},
                                     {"namespaces", "Namespaces", Zero::kNull}};
constexpr GoField kNonResourceRule[] = {{"verbs", "Verbs", Zero::kNull},
                                        {"nonResourceURLs", "NonResourceURLs", Zero::kNull}};
constexpr GoField kRule[] = {{"subjects", "Subjects", Zero::kNull, kSubject},
                             {"resourceRules", "ResourceRules", Zero::kNull, kResourceRule},
                             {"nonResourceRules", "NonResourceRules", Zero::kNull, kNonResourceRule}};
constexpr GoField kSpec[] = {{"priorityLevelConfiguration", "PriorityLevelConfiguration", Zero::kStruct, kName},
                             {"matchingPrecedence", "MatchingPrecedence", Zero::kNumber},
                             {"distinguisherMethod", "DistinguisherMethod", Zero::kNull, kMethod},
                             {"rules", "Rules", Zero::kNull, kRule}};

void SetDefaults(base::Arena& arena, Value object) {
  DefaultIfZero(arena, object.EnsureMap(arena, "spec"), "matchingPrecedence", kDefaultMatchingPrecedence);
}

bool HasWildcard(const Value& list) {
  return std::ranges::any_of(list.items(), [](const Value& item) { return item.as_string() == "*"; });
}

void ValidateNamed(const Value& subject, const FieldPath& path, std::string_view field, std::string_view kind,
                   FieldErrors& errors) {
  if (subject.is_null()) {
    errors.push_back(
        Required(path, std::string(field) + " is required when subject kind is '" + std::string(kind) + "'"));
  } else if (subject["name"].as_string().empty()) {
    errors.push_back(Required(path.Child("name")));
  }
}

void ValidateServiceAccount(const Value& subject, const FieldPath& path, FieldErrors& errors) {
  if (subject.is_null()) {
    errors.push_back(Required(path, "serviceAccount is required when subject kind is 'ServiceAccount'"));
    return;
  }
  const std::string_view name = subject["name"].as_string();
  if (name.empty()) {
    errors.push_back(Required(path.Child("name")));
  } else if (name != "*") {
    AddInvalid(path.Child("name"), name, validation::NameIsDNSSubdomain(name, false), errors);
  }
  const std::string_view name_space = subject["namespace"].as_string();
  if (name_space.empty()) {
    errors.push_back(Required(path.Child("namespace"), "must specify namespace for service account"));
  } else {
    AddInvalid(path.Child("namespace"), name_space, validation::NameIsDNSLabel(name_space, false), errors);
  }
}

struct SubjectKind {
  std::string_view kind;
  std::string_view field;
};
// In the order in which forbidden members are reported.
constexpr SubjectKind kSubjectKinds[] = {{"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}};

void ValidateSubject(const Value& subject, const FieldPath& path, FieldErrors& errors) {
  const std::string_view kind = subject["kind"].as_string();
  const auto* const known = std::ranges::find(kSubjectKinds, kind, &SubjectKind::kind);
  if (known == std::end(kSubjectKinds)) {
    NotSupportedValue(path.Child("kind"), kind, {"Group", "ServiceAccount", "User"}, errors);
    return;
  }
  if (kind == "ServiceAccount") {
    ValidateServiceAccount(subject[known->field], path.Child(known->field), errors);
  } else {
    ValidateNamed(subject[known->field], path.Child(known->field), known->field, kind, errors);
  }
  for (const SubjectKind& other : kSubjectKinds) {
    if (other.kind == kind || subject[other.field].is_null()) continue;
    errors.push_back(Forbidden(
        path.Child(other.field),
        std::string(other.field) + " is forbidden when subject kind is not '" + std::string(other.kind) + "'"));
  }
}

void ValidateVerbs(const Value& verbs, const FieldPath& path, FieldErrors& errors) {
  if (verbs.empty()) {
    errors.push_back(Required(path, "verbs must contain at least one value"));
  } else if (HasWildcard(verbs)) {
    if (verbs.size() > 1) errors.push_back(Invalid(path, verbs, "if '*' is present, must not specify other verbs"));
  } else if (!std::ranges::all_of(verbs.items(),
                                  [](const Value& verb) { return std::ranges::count(kVerbs, verb.as_string()) > 0; })) {
    errors.push_back(validation::NotSupported(path, verbs, kVerbs));
  }
}

void ValidateResourceRule(const Value& rule, const FieldPath& path, FieldErrors& errors) {
  ValidateVerbs(rule["verbs"], path.Child("verbs"), errors);
  const Value groups = rule["apiGroups"];
  if (groups.empty()) {
    errors.push_back(Required(path.Child("apiGroups"), "resource rules must supply at least one api group"));
  } else if (groups.size() > 1 && HasWildcard(groups)) {
    errors.push_back(Invalid(path.Child("apiGroups"), groups, "if '*' is present, must not specify other api groups"));
  }
  const Value resources = rule["resources"];
  if (resources.empty()) {
    errors.push_back(Required(path.Child("resources"), "resource rules must supply at least one resource"));
  } else if (resources.size() > 1 && HasWildcard(resources)) {
    errors.push_back(
        Invalid(path.Child("resources"), resources, "if '*' is present, must not specify other resources"));
  }
  const Value namespaces = rule["namespaces"];
  const FieldPath namespaces_path = path.Child("namespaces");
  if (namespaces.empty() && !rule["clusterScope"].as_bool()) {
    errors.push_back(
        Required(namespaces_path, "resource rules that are not cluster scoped must supply at least one namespace"));
  } else if (HasWildcard(namespaces)) {
    if (namespaces.size() > 1)
      errors.push_back(Invalid(namespaces_path, namespaces, "if '*' is present, must not specify other namespaces"));
  } else {
    std::int64_t index = 0;
    for (const Value& name : namespaces.items()) {
      const FieldPath at = namespaces_path.Index(index++);
      for (const std::string& message : validation::NameIsDNSLabel(name.as_string(), false)) {
        errors.push_back(Invalid(at, name, "each member of this list must be '*' or a DNS-1123 label; " + message));
      }
    }
  }
}

std::string_view URLProblem(std::string_view url) {
  if (url.empty()) return "must not be empty";
  if (url == "/") return {};
  if (!url.starts_with('/')) return "must start with slash";
  if (url.find(' ') != std::string_view::npos) return "must not contain white-space";
  if (url.find("//") != std::string_view::npos) return "must not contain double slash";
  const auto wildcards = std::ranges::count(url, '*');
  if (wildcards > 1 || (wildcards == 1 && !url.ends_with("/*"))) return "wildcard can only do suffix matching";
  return {};
}

void ValidateNonResourceRule(const Value& rule, const FieldPath& path, FieldErrors& errors) {
  ValidateVerbs(rule["verbs"], path.Child("verbs"), errors);
  const Value urls = rule["nonResourceURLs"];
  const FieldPath urls_path = path.Child("nonResourceURLs");
  if (urls.empty()) {
    errors.push_back(Required(urls_path, "nonResourceURLs must contain at least one value"));
  } else if (HasWildcard(urls)) {
    if (urls.size() > 1)
      errors.push_back(Invalid(urls_path, urls, "if '*' is present, must not specify other non-resource URLs"));
  } else {
    std::int64_t index = 0;
    for (const Value& url : urls.items()) {
      const FieldPath at = urls_path.Index(index++);
      if (const std::string_view why = URLProblem(url.as_string()); !why.empty())
        errors.push_back(Invalid(at, url, why));
    }
  }
}

void ValidateRule(const Value& rule, const FieldPath& path, FieldErrors& errors) {
  const FieldPath subjects = path.Child("subjects");
  if (rule["subjects"].empty()) errors.push_back(Required(subjects, "subjects must contain at least one value"));
  std::int64_t index = 0;
  for (const Value& subject : rule["subjects"].items()) ValidateSubject(subject, subjects.Index(index++), errors);
  if (rule["resourceRules"].empty() && rule["nonResourceRules"].empty()) {
    errors.push_back(Required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"));
  }
  const FieldPath resource_rules = path.Child("resourceRules");
  index = 0;
  for (const Value& item : rule["resourceRules"].items())
    ValidateResourceRule(item, resource_rules.Index(index++), errors);
  const FieldPath url_rules = path.Child("nonResourceRules");
  index = 0;
  for (const Value& item : rule["nonResourceRules"].items())
    ValidateNonResourceRule(item, url_rules.Index(index++), errors);
}

void ValidateSpec(const Value& spec, std::string_view name, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value precedence(spec["matchingPrecedence"].as_int());
  const FieldPath precedence_path = path.Child("matchingPrecedence");
  if (precedence.as_int() <= 0) errors.push_back(Invalid(precedence_path, precedence, "must be a positive value"));
  if (precedence.as_int() > kMatchingPrecedenceMax)
    errors.push_back(Invalid(precedence_path, precedence, "must not be greater than 10000"));
  if (precedence.as_int() == 1 && name != "exempt") {
    errors.push_back(
        Invalid(precedence_path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"));
  }
  if (const Value method = spec["distinguisherMethod"];
      !method.is_null() && !OneOf(method["type"].as_string(), {"ByNamespace", "ByUser"})) {
    const FieldPath method_path = path.Child("distinguisherMethod");
    errors.push_back({.type = meta::FieldError::Type::kNotSupported,
                      .field = method_path.Child("type").ToString(),
                      .value = RenderGoStruct(method, kMethod),
                      .detail = "supported values: \"ByNamespace\", \"ByUser\""});
  }
  const FieldPath level = path.Child("priorityLevelConfiguration");
  const std::string_view level_name = spec["priorityLevelConfiguration"]["name"].as_string();
  if (level_name.empty()) {
    errors.push_back(Required(level.Child("name"), "must reference a priority level"));
  } else {
    AddInvalid(level.Child("name"), level_name, validation::NameIsDNSSubdomain(level_name, false), errors);
  }
  const FieldPath rules_path = path.Child("rules");
  std::int64_t index = 0;
  for (const Value& rule : spec["rules"].items()) ValidateRule(rule, rules_path.Index(index++), errors);
}

void ValidateFlowSchema(const Call& call, Value object, Value, FieldErrors& errors) {
  const std::string_view name = object["metadata"]["name"].as_string();
  ValidateSpec(object["spec"], name, errors);
  if (const Value fixed = MandatoryFlowSchemaSpec(call.arena, name);
      !fixed.is_null() && !SemanticEqual(object["spec"], fixed)) {
    errors.push_back(InvalidRendered(FieldPath("spec"), RenderGoStruct(object["spec"], kSpec),
                                     "spec of '" + std::string(name) + "' must equal the fixed value"));
  }
  ValidateFlowControlConditions(object, errors);
}

void ValidateFlowSchemaUpdate(const Call& call, Value object, Value old, FieldErrors& errors) {
  ValidateMeta(object, false, validation::NameIsDNSSubdomain, errors);
  ValidateFlowSchema(call, object, old, errors);
}

void Row(base::Arena& arena, const base::Clock& clock, Value object, Value cells) {
  const Value spec = object["spec"];
  Value dangling = "?";
  for (const Value& condition : object["status"]["conditions"].items()) {
    if (condition["type"].as_string() != "Dangling") continue;
    dangling = condition["status"].as_string();
    break;
  }
  cells.Append(arena, NameCell(object));
  cells.Append(arena, spec["priorityLevelConfiguration"]["name"].as_string());
  cells.Append(arena, spec["matchingPrecedence"].as_int());
  cells.Append(arena, spec["distinguisherMethod"].is_null() ? Value("<none>")
                                                            : Value(spec["distinguisherMethod"]["type"].as_string()));
  cells.Append(arena, Age(arena, clock, object));
  cells.Append(arena, dangling);
}

constexpr std::string_view kMainReset[] = {"status"};
constexpr std::string_view kStatusReset[] = {"metadata", "spec"};

}  // namespace

constexpr Strategy kFlowSchemaStrategy = {
    .group = "flowcontrol.apiserver.k8s.io",
    .kind = "FlowSchema",
    .generation = Generation::kSpec,
    .has_status = true,
    .defaults = SetDefaults,
    .validate = ValidateFlowSchema,
    .update = {.validate_update = ValidateFlowSchemaUpdate, .reset_fields = kMainReset},
    .status = {.prepare_for_update = RestoreFlowControlMetadata,
               .validate_update = ValidateFlowControlStatusUpdate,
               .reset_fields = kStatusReset},
    .table_row = Row,
};

}  // namespace keelson::registry
