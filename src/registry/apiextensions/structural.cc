// Structural schemas: every field has a type, and allOf, anyOf, oneOf and not only narrow
// it.
#include <algorithm>
#include <string>
#include <vector>

#include "base/go_regex.h"
#include "registry/apiextensions/schema_rules.h"
#include "registry/rules/rules.h"

namespace keelson::registry::crd {
namespace {

using rules::IsZero;
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

// Whether no more errors are kept. Counts one more then: the walk ends, since the texts of its errors would be dropped.
bool IsFull(FieldErrors& errors) {
  if (errors.full()) errors.push_back({});
  return errors.full();
}

enum class Level { kRoot, kItem, kField };

Value ItemsSchema(const Value& schema) { return schema["items"].is_map() ? schema["items"] : Value(); }
Value AdditionalSchema(const Value& schema) {
  return schema["additionalProperties"].is_map() ? schema["additionalProperties"] : Value();
}

// NewStructural makes nothing of an empty $ref, nor of a list or map of no values or schemas.
bool IsDropped(std::string_view field, const Value& value) {
  if (field == "$ref") return value.as_string().empty();
  constexpr std::string_view kContainers[] = {
      "enum", "allOf", "anyOf", "oneOf", "items", "definitions", "patternProperties", "dependencies"};
  return (value.is_list() || value.is_map()) && value.empty() &&
         std::ranges::find(kContainers, field) != std::end(kContainers) && !(field == "items" && value.is_map());
}

bool IsOnlyType(const Value& schema, std::string_view type) {
  return schema["type"].as_string() == type && std::ranges::all_of(schema.members(), [](const object::Member& member) {
           return member.key == "type" || IsDropped(member.key, member.value);
         });
}

// anyOf: [{type: integer}, {type: string}], the only form in which types are allowed there.
bool IsIntOrString(const Value& any_of) {
  return any_of.size() == 2 && IsOnlyType(any_of[std::size_t{0}], "integer") &&
         IsOnlyType(any_of[std::size_t{1}], "string");
}

void ValidateNested(const Value& nested, bool skip_any_of, int depth, const FieldPath& path, FieldErrors& errors);

void ValidateValueValidation(const Value& schema, bool skip_any_of, bool skip_first_all_of_any_of, int depth,
                             const FieldPath& path, FieldErrors& errors) {
  std::int64_t index = 0;
  if (!skip_any_of) {
    const FieldPath at = path.Child("anyOf");
    for (const Value& item : schema["anyOf"].items()) ValidateNested(item, false, depth, at.Index(index++), errors);
  }
  const FieldPath all_of = path.Child("allOf");
  index = 0;
  for (const Value& item : schema["allOf"].items()) {
    ValidateNested(item, skip_first_all_of_any_of && index == 0, depth, all_of.Index(index), errors);
    ++index;
  }
  const FieldPath one_of = path.Child("oneOf");
  index = 0;
  for (const Value& item : schema["oneOf"].items()) ValidateNested(item, false, depth, one_of.Index(index++), errors);
  if (!schema["not"].is_null()) ValidateNested(schema["not"], false, depth, path.Child("not"), errors);
  if (const std::string_view pattern = schema["pattern"].as_string(); !pattern.empty()) {
    if (const base::GoRegex compiled(pattern); !compiled.ok()) {
      errors.push_back(Invalid(path.Child("pattern"), pattern,
                               "must be a valid regular expression, but isn't: " + compiled.error()));
    }
  }
}

// Keywords forbidden inside a combination, and their message.
struct ForbiddenField {
  std::string_view name;
  std::string_view must_be;
};
constexpr ForbiddenField kForbiddenBefore[] = {{"type", "empty"},        {"additionalProperties", "undefined"},
                                               {"default", "undefined"}, {"title", "empty"},
                                               {"description", "empty"}, {"nullable", "false"}};
constexpr ForbiddenField kForbiddenExtensions[] = {{"x-kubernetes-preserve-unknown-fields", "false"},
                                                   {"x-kubernetes-embedded-resource", "false"},
                                                   {"x-kubernetes-int-or-string", "false"},
                                                   {"x-kubernetes-list-map-keys", "empty"},
                                                   {"x-kubernetes-list-type", "undefined"},
                                                   {"x-kubernetes-map-type", "undefined"},
                                                   {"x-kubernetes-validations", "empty"}};

void Forbid(const Value& nested, const ForbiddenField& field, const FieldPath& path, FieldErrors& errors) {
  const Value value = nested[field.name];
  if (field.must_be == "undefined" ? value.is_null() : IsZero(value)) return;
  if (field.name == "additionalProperties" && value.is_bool() && !value.as_bool()) return;  // no schema upstream
  errors.push_back(Forbidden(path.Child(field.name), "must be " + std::string(field.must_be) + " to be structural"));
}

void ValidateNested(const Value& nested, bool skip_any_of, int depth, const FieldPath& path, FieldErrors& errors) {
  if (!nested.is_map() || IsFull(errors)) return;
  if (depth >= kSchemaDepthMax) {
    errors.push_back(Forbidden(path, "must not be nested deeper than 256 levels"));
    return;
  }
  ValidateValueValidation(nested, skip_any_of, false, depth + 1, path, errors);
  ValidateNested(ItemsSchema(nested), false, depth + 1, path.Child("items"), errors);
  const FieldPath properties = path.Child("properties");
  for (const auto& member : Sorted(nested["properties"]))
    ValidateNested(member.value, false, depth + 1, properties.Key(member.key), errors);
  for (const ForbiddenField& field : kForbiddenBefore) Forbid(nested, field, path, errors);
  for (const ForbiddenField& field : kForbiddenExtensions) Forbid(nested, field, path, errors);
  if (nested["properties"].Has("metadata")) {
    errors.push_back(Forbidden(properties.Key("metadata"), "must not be specified in a nested context"));
  }
}

void ValidateMetadata(const Value& metadata, bool check, Level level, const FieldPath& path, FieldErrors& errors) {
  if (check && metadata["type"].as_string() != "object") {
    errors.push_back(Invalid(path.Child("type"), metadata["type"].as_string(), "must be object"));
  }
  if (level != Level::kRoot) return;
  const Value properties = metadata["properties"];
  const std::size_t known = (properties.Has("name") ? 1U : 0U) + (properties.Has("generateName") ? 1U : 0U);
  bool clean = properties.size() == known;
  for (const std::string_view field : SetFields(metadata)) {
    if (field == "type" || field == "default" || field == "properties") continue;
    clean = clean && IsDropped(field, metadata[field]);
  }
  if (!clean) {
    errors.push_back(Forbidden(
        path, "must not specify anything other than name and generateName, but metadata is implicitly specified"));
  }
}

void ValidateExtensions(const Value& schema, const FieldPath& path, FieldErrors& errors) {
  if (!schema["x-kubernetes-int-or-string"].as_bool()) return;
  for (const std::string_view field : {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"}) {
    if (schema[field].as_bool()) {
      errors.push_back(Invalid(path.Child(field), Value(true), "must be false if x-kubernetes-int-or-string is true"));
    }
  }
}

void ValidateType(const Value& schema, Level level, const FieldPath& path, FieldErrors& errors) {
  const std::string_view type = schema["type"].as_string();
  const FieldPath at = path.Child("type");
  if (schema["x-kubernetes-embedded-resource"].as_bool() && type != "object") {
    constexpr std::string_view kMust = "must be object if x-kubernetes-embedded-resource is true";
    errors.push_back(type.empty() ? Required(at, kMust) : Invalid(at, type, kMust));
  } else if (type.empty() && !schema["x-kubernetes-int-or-string"].as_bool() &&
             !schema["x-kubernetes-preserve-unknown-fields"].as_bool()) {
    errors.push_back(Required(at, level == Level::kRoot   ? "must not be empty at the root"
                                  : level == Level::kItem ? "must not be empty for specified array items"
                                                          : "must not be empty for specified object fields"));
  }
}

void ValidateInvariants(const Value& schema, Level level, int depth, const FieldPath& path, FieldErrors& errors) {
  if (!schema.is_map() || IsFull(errors)) return;
  if (depth >= kSchemaDepthMax) {
    errors.push_back(Forbidden(path, "must not be nested deeper than 256 levels"));
    return;
  }
  const std::string_view type = schema["type"].as_string();
  const Value properties = schema["properties"];
  const FieldPath properties_path = path.Child("properties");
  const bool embedded = schema["x-kubernetes-embedded-resource"].as_bool();
  if (type == "array" && !schema["items"].is_map())
    errors.push_back(Required(path.Child("items"), "must be specified"));
  ValidateInvariants(ItemsSchema(schema), Level::kItem, depth + 1, path.Child("items"), errors);
  for (const auto& member : Sorted(properties))
    ValidateInvariants(member.value, Level::kField, depth + 1, properties_path.Key(member.key), errors);
  if (!schema["additionalProperties"].is_null()) {
    const FieldPath at = path.Child("additionalProperties");
    if (level == Level::kRoot) errors.push_back(Forbidden(at, "must not be used at the root"));
    ValidateInvariants(AdditionalSchema(schema), Level::kField, depth + 1, at, errors);
  }
  ValidateExtensions(schema, path, errors);
  const bool first_all_of = IsIntOrString(schema["allOf"][std::size_t{0}]["anyOf"]);
  ValidateValueValidation(schema, IsIntOrString(schema["anyOf"]), first_all_of, depth, path, errors);
  const bool check_metadata = level == Level::kRoot || embedded;
  ValidateType(schema, level, path, errors);
  if (embedded && !schema["additionalProperties"].is_null()) {
    errors.push_back(
        Forbidden(path.Child("additionalProperties"), "must not be used if x-kubernetes-embedded-resource is set"));
  }
  if (level == Level::kRoot && !type.empty() && type != "object")
    errors.push_back(Invalid(path.Child("type"), type, "must be object at the root"));
  for (const std::string_view field : {"kind", "apiVersion"}) {
    if (!check_metadata || !properties.Has(field)) continue;
    const std::string_view field_type = properties[field]["type"].as_string();
    const FieldPath field_path = properties_path.Key(field);
    if (field_type != "string") errors.push_back(Invalid(field_path.Child("type"), field_type, "must be string"));
  }
  if (properties.Has("metadata"))
    ValidateMetadata(properties["metadata"], check_metadata, level, properties_path.Key("metadata"), errors);
  if (embedded && !schema["x-kubernetes-preserve-unknown-fields"].as_bool() && properties.empty()) {
    errors.push_back(Required(
        properties_path,
        "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"));
  }
}

void ValidateNestedCompleteness(const Value& nested, const Value& schema, int depth, const FieldPath& schema_path,
                                const FieldPath& nested_path, FieldErrors& errors);

// Everything that combinations speak of must be in the schema proper.
void ValidateCompleteness(const Value& validation, const Value& schema, int depth, const FieldPath& schema_path,
                          const FieldPath& nested_path, FieldErrors& errors) {
  if (!validation["not"].is_null()) {
    ValidateNestedCompleteness(validation["not"], schema, depth + 1, schema_path, nested_path.Child("not"), errors);
  }
  for (const std::string_view field : {"allOf", "anyOf", "oneOf"}) {
    const FieldPath list = nested_path.Child(field);
    std::int64_t index = 0;
    for (const Value& item : validation[field].items()) {
      ValidateNestedCompleteness(item, schema, depth + 1, schema_path, list.Index(index++), errors);
    }
  }
}

void ValidateNestedCompleteness(const Value& nested, const Value& schema, int depth, const FieldPath& schema_path,
                                const FieldPath& nested_path, FieldErrors& errors) {
  if (!nested.is_map() || depth >= kSchemaDepthMax || IsFull(errors)) return;  // The invariants report excessive depth.
  if (!schema.is_map()) {
    errors.push_back(Required(schema_path, "because it is defined in " + nested_path.ToString()));
    return;
  }
  ValidateCompleteness(nested, schema, depth, schema_path, nested_path, errors);
  ValidateNestedCompleteness(ItemsSchema(nested), ItemsSchema(schema), depth + 1, schema_path.Child("items"),
                             nested_path.Child("items"), errors);
  const FieldPath schema_properties = schema_path.Child("properties");
  const FieldPath nested_properties = nested_path.Child("properties");
  for (const auto& member : Sorted(nested["properties"])) {
    const FieldPath at = nested_properties.Key(member.key);
    if (!schema["properties"].Has(member.key)) {
      errors.push_back(Required(schema_properties.Key(member.key), "because it is defined in " + at.ToString()));
    } else {
      ValidateNestedCompleteness(member.value, schema["properties"][member.key], depth + 1,
                                 schema_properties.Key(member.key), at, errors);
    }
  }
}

}  // namespace

void ValidateStructural(const Value& schema, const FieldPath& path, FieldErrors& errors) {
  FieldErrors found;
  ValidateInvariants(schema, Level::kRoot, 0, path, found);
  ValidateCompleteness(schema, schema, 0, path, path, found);
  std::ranges::sort(found, {}, [](const validation::FieldError& error) { return error.ToString(); });
  errors.insert(errors.end(), found.begin(), found.end());
}

}  // namespace keelson::registry::crd
