// The rules of metadata, labels, selectors and conditions: what every kind shares.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "meta/label_syntax.h"
#include "meta/options.h"
#include "object/json_text.h"
#include "schema/facts.h"
#include "validation/primitives.h"

namespace keelson::validation {
namespace {

constexpr std::size_t kAnnotationsBytesMax = 256 * 1024;
constexpr std::size_t kSubresourceNameMax = 256;
constexpr std::size_t kReasonBytesMax = 1024;
constexpr std::size_t kMessageBytesMax = 32 * 1024;
constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForegroundDeletion = "foregroundDeletion";

// Go walks maps in any order; we report by key, so that a message is the same each time.
std::vector<const object::Member*> ByKey(const Value& map) {
  std::vector<const object::Member*> members;
  members.reserve(map.size());
  for (const object::Member& member : map.members()) members.push_back(&member);
  std::ranges::sort(members, {}, [](const object::Member* member) { return member->key; });
  return members;
}

void AddAll(const Messages& messages, std::string_view value, const FieldPath& path, FieldErrors& errors) {
  for (const std::string& message : messages) errors.push_back(Invalid(path, value, message));
}

// As Go marshals the struct: its field order, the four required members always there.
std::string OwnerReferenceJSON(const Value& reference) {
  std::string out = "{";
  for (const char* name : {"apiVersion", "kind", "name", "uid"}) {
    if (out.size() > 1) out += ',';
    object::AppendJSONString(out, name);
    out += ':';
    object::AppendJSONString(out, reference[name].as_string());
  }
  for (const char* name : {"controller", "blockOwnerDeletion"}) {
    if (reference[name].is_null()) continue;
    out += ",\"" + std::string(name) + "\":";
    object::AppendJSON(out, reference[name]);
  }
  return out + '}';
}

FieldError InvalidRendered(const FieldPath& path, std::string rendered, std::string detail) {
  return {FieldError::Type::kInvalid, path.ToString(), std::move(rendered), std::move(detail)};
}

void ValidateOwnerReference(const Value& reference, const FieldPath& path, FieldErrors& errors) {
  const std::string_view api_version = reference["apiVersion"].as_string();
  const std::size_t slash = api_version.find('/');
  const bool two_slashes =
      slash != std::string_view::npos && api_version.find('/', slash + 1) != std::string_view::npos;
  // schema.FromAPIVersionAndKind: what does not parse has neither group nor version.
  const std::string_view version = two_slashes                       ? std::string_view()
                                   : slash == std::string_view::npos ? api_version
                                                                     : api_version.substr(slash + 1);
  const std::string_view group =
      two_slashes || slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
  if (version.empty()) errors.push_back(Invalid(path.Child("apiVersion"), api_version, "version must not be empty"));
  for (const char* name : {"kind", "name", "uid"}) {
    if (reference[name].as_string().empty()) errors.push_back(Invalid(path.Child(name), "", "must not be empty"));
  }
  const std::string_view kind = reference["kind"].as_string();
  const bool banned = std::ranges::any_of(schema::Facts(), [&](const schema::ResourceFacts& facts) {
    return facts.banned_owner && facts.group == group && facts.version == version && facts.kind == kind;
  });
  if (banned) {
    const std::string text = std::string(group) + "/" + std::string(version) + ", Kind=" + std::string(kind);
    errors.push_back(InvalidRendered(path, OwnerReferenceJSON(reference), text + " is disallowed from being an owner"));
  }
}

void ValidateOwnerReferences(const Value& references, const FieldPath& path, FieldErrors& errors) {
  std::string controller;
  std::string all;  // rendered for the first error
  for (const Value& reference : references.items()) {
    if (errors.full()) return;
    ValidateOwnerReference(reference, path, errors);
    if (!reference["controller"].as_bool()) continue;
    std::string name = std::string(reference["kind"].as_string()) + "/" + std::string(reference["name"].as_string());
    if (controller.empty()) {
      controller = std::move(name);
      continue;
    }
    if (all.empty()) {
      all = "[";
      for (const Value& one : references.items()) all += (all.size() > 1 ? "," : "") + OwnerReferenceJSON(one);
      all += ']';
    }
    errors.push_back(
        InvalidRendered(path, all,
                        "Only one reference can have Controller set to true. Found \"true\" in references for " +
                            controller + " and " + name));
  }
}

void ValidateFinalizers(const Value& finalizers, const FieldPath& path, FieldErrors& errors) {
  bool orphan = false;
  bool foreground = false;
  for (const Value& finalizer : finalizers.items()) {
    if (errors.full()) return;
    AddAll(IsQualifiedName(finalizer.as_string()), finalizer.as_string(), path, errors);
    orphan |= finalizer.as_string() == kOrphan;
    foreground |= finalizer.as_string() == kForegroundDeletion;
  }
  if (orphan && foreground) {
    errors.push_back(Invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"));
  }
}

void ValidateCoreFinalizers(const Value& finalizers, const FieldPath& path, FieldErrors& errors) {
  std::int64_t index = 0;
  for (const Value& finalizer : finalizers.items()) {
    if (errors.full()) return;
    const std::string_view name = finalizer.as_string();
    const bool standard = name == "kubernetes" || name == kOrphan || name == kForegroundDeletion;
    if (name.find('/') == std::string_view::npos && !standard) {
      errors.push_back(
          Invalid(path.Index(index), name, "name is neither a standard finalizer name nor is it fully qualified"));
    }
    ++index;
  }
}

void ValidateManagedFields(const Value& entries, const FieldPath& path, FieldErrors& errors) {
  std::int64_t index = 0;
  for (const Value& entry : entries.items()) {
    if (errors.full()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view operation = entry["operation"].as_string();
    if (operation != "Apply" && operation != "Update") {
      errors.push_back(Invalid(at.Child("operation"), operation, "must be `Apply` or `Update`"));
    }
    const std::string_view type = entry["fieldsType"].as_string();
    if (!type.empty() && type != "FieldsV1")
      errors.push_back(Invalid(at.Child("fieldsType"), type, "must be `FieldsV1`"));
    meta::ValidateFieldManager(entry["manager"].as_string(), at.Child("manager").ToString(), errors);
    if (entry["subresource"].as_string().size() > kSubresourceNameMax) {
      errors.push_back(TooLong(at.Child("subresource"), kSubresourceNameMax));
    }
  }
}

// Absent and "" are the same for a Go string.
void ValidateImmutableText(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors) {
  if (now.as_string() != old.as_string()) errors.push_back(Invalid(path, now.as_string(), "field is immutable"));
}

bool IsConditionReason(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto word = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  if (text.empty() || !letter(text.front()) || !word(text.back())) return false;
  return std::ranges::all_of(text, [&](char c) { return word(c) || c == ',' || c == ':'; });
}

void ValidateCondition(const Value& condition, const FieldPath& path, FieldErrors& errors) {
  static constexpr std::string_view kStatuses[] = {"False", "True", "Unknown"};
  ValidateLabelName(condition["type"].as_string(), path.Child("type"), errors);
  const std::string_view status = condition["status"].as_string();
  if (std::ranges::find(kStatuses, status) == std::end(kStatuses)) {
    errors.push_back(NotSupported(path.Child("status"), status, kStatuses));
  }
  if (condition["observedGeneration"].as_int() < 0) {
    errors.push_back(Invalid(path.Child("observedGeneration"), condition["observedGeneration"],
                             "must be greater than or equal to zero"));
  }
  if (condition["lastTransitionTime"].is_null()) errors.push_back(Required(path.Child("lastTransitionTime")));
  const std::string_view reason = condition["reason"].as_string();
  if (reason.empty()) {
    errors.push_back(Required(path.Child("reason")));
  } else {
    if (!IsConditionReason(reason)) {
      errors.push_back(Invalid(
          path.Child("reason"), reason,
          meta::RegexError("a condition reason must start with alphabetic character, optionally followed by a string "
                           "of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
                           "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
                           {"my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"})));
    }
    if (reason.size() > kReasonBytesMax) errors.push_back(TooLong(path.Child("reason"), kReasonBytesMax));
  }
  if (condition["message"].as_string().size() > kMessageBytesMax)
    errors.push_back(TooLong(path.Child("message"), kMessageBytesMax));
}

}  // namespace

void ValidateLabelName(std::string_view name, const FieldPath& path, FieldErrors& errors) {
  AddAll(IsQualifiedName(name), name, path, errors);
}

void ValidateLabels(const Value& labels, const FieldPath& path, FieldErrors& errors) {
  for (const object::Member* label : ByKey(labels)) {
    if (errors.full()) return;
    ValidateLabelName(label->key, path, errors);
    AddAll(IsValidLabelValue(label->value.as_string()), label->value.as_string(), path, errors);
  }
}

void ValidateAnnotations(const Value& annotations, const FieldPath& path, FieldErrors& errors) {
  std::size_t bytes = 0;
  for (const object::Member* annotation : ByKey(annotations)) {
    bytes += annotation->key.size() + annotation->value.as_string().size();
    if (errors.full()) continue;
    for (const std::string& message : IsQualifiedName(base::ToLower(annotation->key))) {
      errors.push_back(Invalid(path, annotation->key, message));
    }
  }
  if (bytes > kAnnotationsBytesMax) errors.push_back(TooLong(path, kAnnotationsBytesMax));
}

void ValidateLabelSelector(const Value& selector, const FieldPath& path, FieldErrors& errors,
                           bool allow_invalid_values) {
  ValidateLabels(selector["matchLabels"], path.Child("matchLabels"), errors);
  const FieldPath expressions = path.Child("matchExpressions");
  std::int64_t index = 0;
  for (const Value& expression : selector["matchExpressions"].items()) {
    if (errors.full()) return;
    const FieldPath at = expressions.Index(index++);
    const FieldPath values = at.Child("values");
    const std::string_view op = expression["operator"].as_string();
    if (op == "In" || op == "NotIn") {
      if (expression["values"].empty())
        errors.push_back(Required(values, "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!expression["values"].empty()) {
        errors.push_back(Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
      }
    } else {
      errors.push_back(Invalid(at.Child("operator"), op, "not a valid selector operator"));
    }
    ValidateLabelName(expression["key"].as_string(), at.Child("key"), errors);
    if (allow_invalid_values) continue;
    std::int64_t value_index = 0;
    for (const Value& value : expression["values"].items()) {
      if (errors.full()) return;
      AddAll(IsValidLabelValue(value.as_string()), value.as_string(), values.Index(value_index++), errors);
    }
  }
}

void ValidateConditions(const Value& conditions, const FieldPath& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  std::int64_t index = 0;
  for (const Value& condition : conditions.items()) {
    if (errors.full()) return;
    const FieldPath at = path.Index(index++);
    const std::string_view type = condition["type"].as_string();
    if (!seen.insert(type).second) errors.push_back(Duplicate(at.Child("type"), type));
    ValidateCondition(condition, at, errors);
  }
}

void ValidateObjectMeta(const Value& metadata, bool namespaced, NameRule rule, const FieldPath& path,
                        FieldErrors& errors, bool core_finalizers) {
  const std::string_view generate_name = metadata["generateName"].as_string();
  if (!generate_name.empty()) AddAll(rule(generate_name, true), generate_name, path.Child("generateName"), errors);
  const std::string_view name = metadata["name"].as_string();
  if (name.empty()) {
    errors.push_back(Required(path.Child("name"), "name or generateName is required"));
  } else {
    AddAll(rule(name, false), name, path.Child("name"), errors);
  }
  const std::string_view name_space = metadata["namespace"].as_string();
  if (namespaced && name_space.empty()) {
    errors.push_back(Required(path.Child("namespace")));
  } else if (namespaced) {
    AddAll(IsDNS1123Label(name_space), name_space, path.Child("namespace"), errors);
  } else if (!name_space.empty()) {
    errors.push_back(Forbidden(path.Child("namespace"), "not allowed on this type"));
  }
  ValidateNonnegative(metadata["generation"].as_int(), path.Child("generation"), errors);
  ValidateLabels(metadata["labels"], path.Child("labels"), errors);
  ValidateAnnotations(metadata["annotations"], path.Child("annotations"), errors);
  ValidateOwnerReferences(metadata["ownerReferences"], path.Child("ownerReferences"), errors);
  ValidateFinalizers(metadata["finalizers"], path.Child("finalizers"), errors);
  ValidateManagedFields(metadata["managedFields"], path.Child("managedFields"), errors);
  if (core_finalizers) ValidateCoreFinalizers(metadata["finalizers"], path.Child("finalizers"), errors);
}

void ValidateObjectMetaUpdate(const Value& now, const Value& old, const FieldPath& path, FieldErrors& errors,
                              bool core_finalizers) {
  if (!old["deletionTimestamp"].is_null()) {
    std::set<std::string_view> added;
    for (const Value& finalizer : now["finalizers"].items()) added.insert(finalizer.as_string());
    for (const Value& finalizer : old["finalizers"].items()) added.erase(finalizer.as_string());
    if (!added.empty()) {
      std::string list;
      for (const std::string_view name : added) list += (list.empty() ? "" : ", ") + base::GoQuote(name);
      errors.push_back(
          Forbidden(path.Child("finalizers"),
                    "no new finalizers can be added if the object is being deleted, found new finalizers []string{" +
                        list + "}"));
    }
  }
  if (now["resourceVersion"].as_string().empty()) {
    errors.push_back(Invalid(path.Child("resourceVersion"), "", "must be specified for an update"));
  }
  if (now["generation"].as_int() < old["generation"].as_int()) {
    errors.push_back(Invalid(path.Child("generation"), Value(now["generation"].as_int()), "must not be decremented"));
  }
  ValidateImmutableText(now["name"], old["name"], path.Child("name"), errors);
  ValidateImmutableText(now["namespace"], old["namespace"], path.Child("namespace"), errors);
  ValidateImmutableText(now["uid"], old["uid"], path.Child("uid"), errors);
  for (const char* field : {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    ValidateImmutableField(now[field], old[field], path.Child(field), errors);
  }
  ValidateLabels(now["labels"], path.Child("labels"), errors);
  ValidateAnnotations(now["annotations"], path.Child("annotations"), errors);
  ValidateOwnerReferences(now["ownerReferences"], path.Child("ownerReferences"), errors);
  ValidateManagedFields(now["managedFields"], path.Child("managedFields"), errors);
  if (core_finalizers) ValidateCoreFinalizers(now["finalizers"], path.Child("finalizers"), errors);
}

}  // namespace keelson::validation
