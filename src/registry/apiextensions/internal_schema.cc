// JSONSchemaProps as upstream's internal type looks in JSON: all fields, by their Go names.
#include <algorithm>
#include <vector>

#include "object/json_text.h"
#include "registry/apiextensions/schema_rules.h"

namespace keelson::registry::crd {
namespace {

using object::AppendJSON;
using object::AppendJSONString;

enum class Shape : std::uint8_t {
  kText,
  kBool,
  kPointer,
  kList,
  kSchema,
  kSchemas,
  kSchemaMap,
  kItems,
  kOrBool,
  kDependencies,
  kDocs,
  kRules
};

struct Field {
  std::string_view name;  // Go's
  std::string_view key;   // in JSON
  Shape shape;
};

constexpr Field kFields[] = {
    {"ID", "id", Shape::kText},
    {"Schema", "$schema", Shape::kText},
    {"Ref", "$ref", Shape::kPointer},
    {"Description", "description", Shape::kText},
    {"Type", "type", Shape::kText},
    {"Nullable", "nullable", Shape::kBool},
    {"Format", "format", Shape::kText},
    {"Title", "title", Shape::kText},
    {"Default", "default", Shape::kPointer},
    {"Maximum", "maximum", Shape::kPointer},
    {"ExclusiveMaximum", "exclusiveMaximum", Shape::kBool},
    {"Minimum", "minimum", Shape::kPointer},
    {"ExclusiveMinimum", "exclusiveMinimum", Shape::kBool},
    {"MaxLength", "maxLength", Shape::kPointer},
    {"MinLength", "minLength", Shape::kPointer},
    {"Pattern", "pattern", Shape::kText},
    {"MaxItems", "maxItems", Shape::kPointer},
    {"MinItems", "minItems", Shape::kPointer},
    {"UniqueItems", "uniqueItems", Shape::kBool},
    {"MultipleOf", "multipleOf", Shape::kPointer},
    {"Enum", "enum", Shape::kList},
    {"MaxProperties", "maxProperties", Shape::kPointer},
    {"MinProperties", "minProperties", Shape::kPointer},
    {"Required", "required", Shape::kList},
    {"Items", "items", Shape::kItems},
    {"AllOf", "allOf", Shape::kSchemas},
    {"OneOf", "oneOf", Shape::kSchemas},
    {"AnyOf", "anyOf", Shape::kSchemas},
    {"Not", "not", Shape::kSchema},
    {"Properties", "properties", Shape::kSchemaMap},
    {"AdditionalProperties", "additionalProperties", Shape::kOrBool},
    {"PatternProperties", "patternProperties", Shape::kSchemaMap},
    {"Dependencies", "dependencies", Shape::kDependencies},
    {"AdditionalItems", "additionalItems", Shape::kOrBool},
    {"Definitions", "definitions", Shape::kSchemaMap},
    {"ExternalDocs", "externalDocs", Shape::kDocs},
    {"Example", "example", Shape::kPointer},
    {"XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Shape::kPointer},
    {"XEmbeddedResource", "x-kubernetes-embedded-resource", Shape::kBool},
    {"XIntOrString", "x-kubernetes-int-or-string", Shape::kBool},
    {"XListMapKeys", "x-kubernetes-list-map-keys", Shape::kList},
    {"XListType", "x-kubernetes-list-type", Shape::kPointer},
    {"XMapType", "x-kubernetes-map-type", Shape::kPointer},
    {"XValidations", "x-kubernetes-validations", Shape::kRules},
};

// A JSON value of the schema (default, enum, example), with the members of every map sorted by key.
void AppendSortedJSON(const Value& value, std::string& out) {
  if (value.is_map()) {
    out += '{';
    for (const auto& member : Sorted(value)) {
      if (out.back() != '{') out += ',';
      AppendJSONString(out, member.key);
      out += ':';
      AppendSortedJSON(member.value, out);
    }
    out += '}';
  } else if (value.is_list()) {
    out += '[';
    for (const Value& item : value.items()) {
      if (out.back() != '[') out += ',';
      AppendSortedJSON(item, out);
    }
    out += ']';
  } else {
    AppendJSON(out, value);
  }
}

void AppendSchema(const Value& schema, int depth, std::string& out);

void AppendSchemas(const Value& list, int depth, std::string& out) {
  out += '[';
  bool first = true;
  for (const Value& item : list.items()) {
    if (!first) out += ',';
    first = false;
    AppendSchema(item, depth, out);
  }
  out += ']';
}

// By key, as Go writes maps.
void AppendSchemaMap(const Value& map, int depth, std::string& out) {
  out += '{';
  for (const object::Member& member : Sorted(map)) {
    if (out.back() != '{') out += ',';
    AppendJSONString(out, member.key);
    out += ':';
    AppendSchema(member.value, depth, out);
  }
  out += '}';
}

// Each is a schema or a list of properties.
void AppendDependencies(const Value& map, int depth, std::string& out) {
  out += '{';
  for (const object::Member& member : Sorted(map)) {
    if (out.back() != '{') out += ',';
    AppendJSONString(out, member.key);
    out += ":{\"Schema\":";
    if (member.value.is_map()) {
      AppendSchema(member.value, depth, out);
    } else {
      out += "null";
    }
    out += ",\"Property\":";
    AppendJSON(out, member.value.is_list() ? member.value : Value());
    out += '}';
  }
  out += '}';
}

void AppendRules(const Value& rules, std::string& out) {
  out += '[';
  for (const Value& rule : rules.items()) {
    out += out.back() == '[' ? "{\"Rule\":" : ",{\"Rule\":";
    AppendJSONString(out, rule["rule"].as_string());
    out += ",\"Message\":";
    AppendJSONString(out, rule["message"].as_string());
    out += ",\"MessageExpression\":";
    AppendJSONString(out, rule["messageExpression"].as_string());
    out += ",\"Reason\":";
    AppendJSON(out, rule["reason"]);
    out += ",\"FieldPath\":";
    AppendJSONString(out, rule["fieldPath"].as_string());
    out += ",\"OptionalOldSelf\":";
    AppendJSON(out, rule["optionalOldSelf"]);
    out += '}';
  }
  out += ']';
}

void AppendField(const Value& value, Shape shape, int depth, std::string& out) {
  if (shape == Shape::kText) return AppendJSONString(out, value.as_string());
  if (shape == Shape::kBool) {
    out += value.as_bool() ? "true" : "false";
    return;
  }
  if (value.is_null() || depth > kSchemaDepthMax || out.size() > kRenderedSchemaMax) {
    out += "null";
    return;
  }
  switch (shape) {
    case Shape::kSchema:
      return AppendSchema(value, depth, out);
    case Shape::kSchemas:
      return AppendSchemas(value, depth, out);
    case Shape::kSchemaMap:
      return AppendSchemaMap(value, depth, out);
    case Shape::kItems:
      out += "{\"Schema\":";
      if (value.is_map()) {
        AppendSchema(value, depth, out);
      } else {
        out += "null";
      }
      out += ",\"JSONSchemas\":";
      if (value.is_list()) {
        AppendSchemas(value, depth, out);
      } else {
        out += "null";
      }
      out += '}';
      return;
    case Shape::kOrBool:
      out += value.is_map() || value.as_bool() ? "{\"Allows\":true,\"Schema\":" : "{\"Allows\":false,\"Schema\":";
      if (value.is_map()) {
        AppendSchema(value, depth, out);
      } else {
        out += "null";
      }
      out += '}';
      return;
    case Shape::kDependencies:
      return AppendDependencies(value, depth, out);
    case Shape::kDocs:
      out += "{\"Description\":";
      AppendJSONString(out, value["description"].as_string());
      out += ",\"URL\":";
      AppendJSONString(out, value["url"].as_string());
      out += '}';
      return;
    case Shape::kRules:
      return AppendRules(value, out);
    default:
      return AppendSortedJSON(value, out);
  }
}

void AppendSchema(const Value& schema, int depth, std::string& out) {
  if (out.size() > kRenderedSchemaMax) {
    out += "null";
    return;
  }
  out += '{';
  for (const Field& field : kFields) {
    if (out.back() != '{') out += ',';
    AppendJSONString(out, field.name);
    out += ':';
    AppendField(schema[field.key], field.shape, depth + 1, out);
  }
  out += '}';
}

}  // namespace

std::vector<object::Member> Sorted(const Value& map) {
  std::vector<object::Member> members(map.members().begin(), map.members().end());
  std::ranges::sort(members, {}, &object::Member::key);
  return members;
}

bool IsSet(const Value& schema, std::string_view key) {
  const auto* field = std::ranges::find(kFields, key, &Field::key);
  const Value value = schema[key];
  if (field == std::end(kFields) || value.is_null()) return false;
  if (field->shape == Shape::kText) return !value.as_string().empty();
  return field->shape != Shape::kBool || value.as_bool();
}

std::vector<std::string_view> SetFields(const Value& schema) {
  std::vector<std::string_view> set;
  for (const Field& field : kFields) {
    if (IsSet(schema, field.key)) set.push_back(field.key);
  }
  return set;
}

std::string InternalItemsJSON(const Value& items) {
  std::string out;
  AppendField(items, Shape::kItems, 0, out);
  return out;
}

bool EqualFields(const Value& one, const Value& other, Shape shape, int depth);

bool EqualSchemasAt(const Value& one, const Value& other, int depth) {
  if (!one.is_map() || !other.is_map() || depth > kSchemaDepthMax) return one.is_map() == other.is_map();
  return std::ranges::all_of(kFields, [&](const Field& field) {
    return EqualFields(one[field.key], other[field.key], field.shape, depth + 1);
  });
}

bool EqualFields(const Value& one, const Value& other, Shape shape, int depth) {
  const bool schemas = shape == Shape::kSchemas || (one.is_list() && other.is_list() && shape == Shape::kItems);
  if (shape == Shape::kText) return one.as_string() == other.as_string();
  if (shape == Shape::kBool) return one.as_bool() == other.as_bool();
  if (schemas || shape == Shape::kSchemaMap || shape == Shape::kList || shape == Shape::kRules) {
    if (one.size() != other.size()) return false;
    if (one.empty()) return true;
  }
  if (schemas) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (!EqualSchemasAt(one[i], other[i], depth)) return false;
    }
    return true;
  }
  if (shape == Shape::kSchemaMap) {
    return std::ranges::all_of(one.members(), [&](const object::Member& member) {
      return other.Has(member.key) && EqualSchemasAt(member.value, other[member.key], depth);
    });
  }
  const bool nested = shape == Shape::kSchema || shape == Shape::kItems || shape == Shape::kOrBool;
  if (nested && one.is_map() && other.is_map()) return EqualSchemasAt(one, other, depth);
  return one == other;
}

bool EqualSchemas(const Value& one, const Value& other) { return EqualSchemasAt(one, other, 0); }

std::string InternalSchemaJSON(const Value& schema) {
  std::string out;
  AppendSchema(schema, 0, out);
  return out;
}

}  // namespace keelson::registry::crd
