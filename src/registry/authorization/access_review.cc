#include <string>
#include <string_view>

#include "registry/authorization/strategies.h"
#include "registry/rules/go_struct.h"
#include "registry/rules/rules.h"

namespace keelson::registry {
namespace {

using namespace rules;  // NOLINT
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

constexpr GoField kNonResourceAttributes[] = {{"path", "Path"}, {"verb", "Verb"}};

std::string Render(const Value& attributes) {
  return attributes.is_null() ? "null" : RenderGoStruct(attributes, kNonResourceAttributes);
}

void ValidateRequirement(const Value& requirement, bool label, const FieldPath& path, FieldErrors& errors) {
  const std::string_view key = requirement["key"].as_string();
  const std::string_view op = requirement["operator"].as_string();
  const Value values = requirement["values"];
  const FieldPath values_path = path.Child("values");
  if (!label && key.empty()) errors.push_back(Required(path.Child("key"), "must be specified"));
  if (op == "In" || op == "NotIn") {
    if (values.empty()) errors.push_back(Required(values_path, "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty())
      errors.push_back(Forbidden(values_path, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
  }  // Unknown operators are left to the authorizer.
  if (!label) return;
  validation::ValidateLabelName(key, path.Child("key"), errors);
  std::int64_t index = 0;
  for (const Value& value : values.items()) {
    AddInvalid(values_path.Index(index++), value.as_string(), validation::IsValidLabelValue(value.as_string()), errors);
  }
}

void ValidateSelector(const Value& selector, bool label, const FieldPath& path, FieldErrors& errors) {
  if (selector.is_null()) return;
  const std::string_view raw = selector["rawSelector"].as_string();
  const Value requirements = selector["requirements"];
  const FieldPath requirements_path = path.Child("requirements");
  if (!raw.empty() && !requirements.empty()) {
    errors.push_back(Invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements"));
  }
  if (raw.empty() && requirements.empty()) {
    errors.push_back(Required(requirements_path,
                              "when " + path.ToString() + " is specified, requirements or rawSelector is required"));
  }
  std::int64_t index = 0;
  for (const Value& requirement : requirements.items())
    ValidateRequirement(requirement, label, requirements_path.Index(index++), errors);
}

void ValidateSpec(const Value& spec, bool self, FieldErrors& errors) {
  const FieldPath path("spec");
  const Value resource = spec["resourceAttributes"];
  const Value url = spec["nonResourceAttributes"];
  if (!resource.is_null() && !url.is_null()) {
    errors.push_back(InvalidRendered(path.Child("nonResourceAttributes"), Render(url),
                                     "cannot be specified in combination with resourceAttributes"));
  }
  if (resource.is_null() && url.is_null()) {
    errors.push_back(InvalidRendered(path.Child("resourceAttributes"), Render(url),
                                     "exactly one of nonResourceAttributes or resourceAttributes must be specified"));
  }
  if (!self && spec["user"].as_string().empty() && spec["groups"].empty()) {
    errors.push_back(Invalid(path.Child("user"), "", "at least one of user or group must be specified"));
  }
  const FieldPath resource_path("spec.resourceAttributes");
  ValidateSelector(resource["fieldSelector"], false, resource_path.Child("fieldSelector"), errors);
  ValidateSelector(resource["labelSelector"], true, resource_path.Child("labelSelector"), errors);
}

void ValidateMetadataEmpty(const Value& object, bool namespace_allowed, FieldErrors& errors) {
  const Value metadata = object["metadata"];
  for (const auto& member : metadata.members()) {
    if (member.key == "managedFields" || IsZero(member.value) || (namespace_allowed && member.key == "namespace"))
      continue;
    errors.push_back(Invalid(FieldPath("metadata"), metadata,
                             namespace_allowed ? "must be empty except for namespace" : "must be empty"));
    return;
  }
}

template <bool kSelf>
void ValidateReview(const Call&, Value object, Value, FieldErrors& errors) {
  ValidateSpec(object["spec"], kSelf, errors);
  ValidateMetadataEmpty(object, false, errors);
}

void ValidateLocalReview(const Call&, Value object, Value, FieldErrors& errors) {
  const Value spec = object["spec"];
  ValidateSpec(spec, false, errors);
  ValidateMetadataEmpty(object, true, errors);
  const Value resource = spec["resourceAttributes"];
  if (!resource.is_null() && resource["namespace"].as_string() != object["metadata"]["namespace"].as_string()) {
    errors.push_back(Invalid(FieldPath("spec.resourceAttributes.namespace"), resource["namespace"].as_string(),
                             "must match metadata.namespace"));
  }
  if (const Value url = spec["nonResourceAttributes"]; !url.is_null()) {
    errors.push_back(
        InvalidRendered(FieldPath("spec.nonResourceAttributes"), Render(url), "disallowed on this kind of request"));
  }
}

constexpr std::string_view kGroup = "authorization.k8s.io";
constexpr Strategy kStrategies[] = {
    {.group = kGroup, .kind = "SubjectAccessReview", .validate = ValidateReview<false>, .validates_metadata = true},
    {.group = kGroup, .kind = "SelfSubjectAccessReview", .validate = ValidateReview<true>, .validates_metadata = true},
    {.group = kGroup, .kind = "LocalSubjectAccessReview", .validate = ValidateLocalReview, .validates_metadata = true},
    {.group = kGroup, .kind = "SelfSubjectRulesReview", .validates_metadata = true},
};

}  // namespace

std::span<const Strategy> AuthorizationStrategies() { return kStrategies; }

}  // namespace keelson::registry
