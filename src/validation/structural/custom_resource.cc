#include "validation/structural/custom_resource.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/hash.h"
#include "base/strings.h"
#include "object/go_text.h"
#include "object/json_text.h"
#include "validation/primitives.h"
#include "validation/structural/object_pipeline.h"

namespace keelson::validation::structural {
namespace {

using object::Member;

constexpr std::string_view kRulesSkipped =
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation";

// kind and apiVersion must be the request's; nothing else is looked at otherwise.
bool ValidateTypeMeta(const CustomResource& resource, const Value& object, FieldErrors& errors) {
  const std::string api_version = std::string(resource.group) + "/" + std::string(resource.version);
  const FieldPath kind("kind"), version("apiVersion");
  if (object["kind"].as_string() != resource.kind)
    errors.push_back(Invalid(kind, object["kind"].as_string(), "must be " + std::string(resource.kind)));
  if (object["apiVersion"].as_string() != api_version)
    errors.push_back(Invalid(version, object["apiVersion"].as_string(), "must be " + api_version));
  return errors.empty();
}

bool Blocks(const FieldError& error) {
  using Type = FieldError::Type;
  switch (error.type) {
    case Type::kNotSupported:
    case Type::kRequired:
    case Type::kTooLong:
    case Type::kTooMany:
    case Type::kTypeInvalid:
      return true;
    default:
      return false;
  }
}

void EvaluateRules(base::Arena& arena, const CustomResource& resource, const Value& object, const Value* old,
                   Verdict& verdict) {
  if (resource.rules == nullptr) return;
  if (std::ranges::any_of(verdict.errors, Blocks)) {
    verdict.errors.push_back(Invalid(FieldPath(), Value(), kRulesSkipped));
    return;
  }
  resource.rules->Evaluate(arena, object, old, resource.interrupt, verdict);
}

// unstructured.NestedFieldNoCopy: the value at the dotted path, none when it is absent; the error of a step into a
// value that is not a map.
Outcome<std::optional<Value>, std::string> Nested(const Value& object, std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  Value at = object;
  std::string walked;
  for (const std::string_view step : base::Split(path, '.')) {
    walked += "." + std::string(step);
    if (at.is_null()) return std::optional<Value>();
    if (!at.is_map()) {
      return walked + " accessor error: " + object::GoSprint(at) + " is of the type " +
             std::string(object::GoTypeName(at)) + ", expected map[string]interface{}";
    }
    const Value* const found = at.Find(step);
    if (found == nullptr) return std::optional<Value>();
    at = *found;
  }
  return std::optional<Value>(at);
}

std::string WrongKindText(std::string_view path, const Value& value, std::string_view expected) {
  const std::string_view type = value.is_null() ? "<nil>" : object::GoTypeName(value);
  return std::string(path) + " accessor error: " + object::GoSprint(value) + " is of the type " + std::string(type) +
         ", expected " + std::string(expected);
}

std::string DottedPath(std::string_view path) {
  return path.starts_with('.') ? std::string(path) : "." + std::string(path);
}

void ValidateReplicas(const Value& object, std::string_view path, FieldErrors& errors) {
  const FieldPath at(path);
  const auto nested = Nested(object, path);
  if (!nested.ok()) {
    errors.push_back(Invalid(at, Value(0), nested.error()));
    return;
  }
  if (!*nested) return;
  const Value found = **nested;
  if (!found.is_int()) {
    errors.push_back(Invalid(at, Value(0), WrongKindText(DottedPath(path), found, "int64")));
  } else if (found.as_int() < 0) {
    errors.push_back(Invalid(at, found, "should be a non-negative integer"));
  } else if (found.as_int() > std::numeric_limits<std::int32_t>::max()) {
    errors.push_back(Invalid(at, found, "should be less than or equal to 2147483647"));
  }
}

// ---- Embedded resources

void ValidateEmbeddedResource(base::Arena& arena, const Value& object, const FieldPath& path, FieldErrors& errors) {
  const FieldPath version = path.Child("apiVersion"), kind = path.Child("kind"), metadata = path.Child("metadata");
  if (!object.Has("apiVersion")) errors.push_back(Required(version));
  if (!object.Has("kind")) errors.push_back(Required(kind));
  if (const Value* const found = object.Find("apiVersion")) {
    const std::string_view text = found->as_string();
    if (!found->is_string()) {
      errors.push_back(Invalid(version, *found, "must be a string"));
    } else if (text.empty()) {
      errors.push_back(Invalid(version, text, "must not be empty"));
    } else if (std::ranges::count(text, '/') > 1) {
      errors.push_back(Invalid(version, text, "unexpected GroupVersion string: " + std::string(text)));
    }
  }
  if (const Value* const found = object.Find("kind")) {
    const std::string_view text = found->as_string();
    if (!found->is_string()) {
      errors.push_back(Invalid(kind, *found, "must be a string"));
    } else if (text.empty()) {
      errors.push_back(Invalid(kind, text, "must not be empty"));
    } else if (const auto wrong = IsDNS1035Label(base::ToLower(text)); !wrong.empty()) {
      errors.push_back(
          Invalid(kind, text, "may have mixed case, but should otherwise match: " + base::Join(wrong, ",")));
    }
  }
  const Value* const found = object.Find("metadata");
  if (found == nullptr) return;
  auto coerced = CoerceObjectMeta(arena, *found, false, nullptr);
  if (!coerced.ok()) {
    errors.push_back(Invalid(metadata, *found, coerced.error()));
    return;
  }
  Value typed = coerced->Clone(arena);
  if (typed["name"].as_string().empty()) typed.Set(arena, "name", "fakename");
  ValidateObjectMeta(typed, !typed["namespace"].as_string().empty(), NameIsPathSegment, metadata, errors, false);
}

void WalkEmbedded(base::Arena& arena, const Value& value, Node schema, bool embedded, const FieldPath& path,
                  FieldErrors& errors) {
  if (!schema || (!embedded && !schema.has_embedded_below())) return;
  if (value.is_map()) {
    if (embedded) ValidateEmbeddedResource(arena, value, path, errors);
    for (const Member& member : value.members()) {
      const Node property = schema.Property(member.key);
      const Node child = property ? property : schema.additional_properties();
      const FieldPath at = property ? path.Child(member.key) : path.Key(member.key);
      WalkEmbedded(arena, member.value, child, child.embedded_resource(), at, errors);
    }
  } else if (value.is_list()) {
    const Node items = schema.items();
    std::int64_t index = 0;
    for (const Value& item : value.items())
      WalkEmbedded(arena, item, items, items.embedded_resource(), path.Index(index++), errors);
  }
}

}  // namespace

void ValidateEmbedded(base::Arena& arena, const Value& object, Node schema, bool resource_root, const FieldPath& path,
                      FieldErrors& errors) {
  WalkEmbedded(arena, object, schema, resource_root || schema.embedded_resource(), path, errors);
}

void ValidateScaleSpec(const CustomResource& resource, const Value& object, FieldErrors& errors) {
  if (resource.scale.enabled) ValidateReplicas(object, resource.scale.spec_replicas, errors);
}

void ValidateScaleStatus(const CustomResource& resource, const Value& object, FieldErrors& errors) {
  if (!resource.scale.enabled) return;
  ValidateReplicas(object, resource.scale.status_replicas, errors);
  const std::string_view path = resource.scale.label_selector;
  if (path.empty()) return;
  const auto found = Nested(object, path);
  const FieldPath at(path);
  if (!found.ok()) {
    errors.push_back(Invalid(at, "", found.error()));
  } else if (*found && !(**found).is_string()) {
    errors.push_back(Invalid(at, "", WrongKindText(DottedPath(path), **found, "string")));
  }
}

Verdict ValidateCreate(base::Arena& arena, const CustomResource& resource, const Value& object) {
  Verdict verdict;
  FieldErrors& errors = verdict.errors;
  if (ValidateTypeMeta(resource, object, errors)) {
    ValidateObjectMeta(object["metadata"], resource.namespaced, NameIsDNSSubdomain, FieldPath("metadata"), errors,
                       false);
    ValidateValue(arena, object, nullptr, resource.schema, FieldPath(), errors);
    ValidateScaleSpec(resource, object, errors);
    ValidateScaleStatus(resource, object, errors);
  }
  ValidateEmbedded(arena, object, resource.schema, false, FieldPath(), errors);
  ValidateListTypes(object, resource.schema, FieldPath(), errors);
  EvaluateRules(arena, resource, object, nullptr, verdict);
  return verdict;
}

// Errors of list types do not count where the old object has some, too.
static void ValidateListTypesUpdate(const CustomResource& resource, const Value& object, const Value& old,
                                    FieldErrors& errors) {
  FieldErrors now;
  ValidateListTypes(object, resource.schema, FieldPath(), now);
  if (now.empty()) return;
  FieldErrors before;
  ValidateListTypes(old, resource.schema, FieldPath(), before);
  if (before.empty()) std::ranges::move(now, std::back_inserter(errors));
}

Verdict ValidateUpdate(base::Arena& arena, const CustomResource& resource, const Value& object, const Value& old) {
  Verdict verdict;
  FieldErrors& errors = verdict.errors;
  if (ValidateTypeMeta(resource, object, errors)) {
    ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors, false);
    ValidateValue(arena, object, &old, resource.schema, FieldPath(), errors);
    ValidateScaleSpec(resource, object, errors);
    ValidateScaleStatus(resource, object, errors);
  }
  ValidateEmbedded(arena, object, resource.schema, false, FieldPath(), errors);
  ValidateListTypesUpdate(resource, object, old, errors);
  EvaluateRules(arena, resource, object, &old, verdict);
  return verdict;
}

Verdict ValidateStatusUpdate(base::Arena& arena, const CustomResource& resource, const Value& object,
                             const Value& old) {
  Verdict verdict;
  FieldErrors& errors = verdict.errors;
  if (ValidateTypeMeta(resource, object, errors)) {
    ValidateObjectMetaUpdate(object["metadata"], old["metadata"], FieldPath("metadata"), errors, false);
    if (const Value* const status = object.Find("status")) {
      ValidateValue(arena, *status, old.Find("status"), resource.schema.Property("status"), FieldPath("status"),
                    errors);
    }
    ValidateScaleStatus(resource, object, errors);
  }
  ValidateListTypesUpdate(resource, object, old, errors);
  EvaluateRules(arena, resource, object, &old, verdict);
  return verdict;
}

std::vector<std::string> FinalizerWarnings(const Value& object, const Value& old) {
  constexpr std::array<std::string_view, 3> kStandard = {"orphan", "foregroundDeletion", "kubernetes"};
  constexpr std::string_view kWhy = " to avoid accidental conflicts with other finalizer writers";
  std::vector<std::string> warnings;
  base::StringViewSet known;
  for (const Value& one : old.Get("metadata", "finalizers").items()) known.insert(one.as_string());
  for (const Value& item : object.Get("metadata", "finalizers").items()) {
    const std::string_view name = item.as_string();
    if (known.contains(name)) continue;
    const std::string prefix = "metadata.finalizers: " + base::GoQuote(name) + ": ";
    for (const std::string& message : IsQualifiedName(name)) warnings.push_back(prefix + message);
    if (name.find('/') != std::string_view::npos || std::ranges::find(kStandard, name) != kStandard.end()) continue;
    const bool dotted = name.find('.') != std::string_view::npos;
    warnings.push_back(prefix + "prefer a domain-qualified finalizer name" + (dotted ? " including a path (/)" : "") +
                       std::string(kWhy));
  }
  return warnings;
}

}  // namespace keelson::validation::structural
