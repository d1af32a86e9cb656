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
    {"Dependencies", "dependencies", Shape::kPointer},
    {"AdditionalItems", "additionalItems", Shape::kOrBool},
    {"Definitions", "definitions", Shape::kSchemaMap},
    {"ExternalDocs", "externalDocs", Shape::kPointer},
    {"Example", "example", Shape::kPointer},
    {"XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Shape::kPointer},
    {"XEmbeddedResource", "x-kubernetes-embedded-resource", Shape::kBool},
    {"XIntOrString", "x-kubernetes-int-or-string", Shape::kBool},
    {"XListMapKeys", "x-kubernetes-list-map-keys", Shape::kList},
    {"XListType", "x-kubernetes-list-type", Shape::kPointer},
    {"XMapType", "x-kubernetes-map-type", Shape::kPointer},
    {"XValidations", "x-kubernetes-validations", Shape::kRules},
};

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
  std::vector<object::Member> sorted(map.members().begin(), map.members().end());
  std::ranges::sort(sorted, {}, &object::Member::key);
  out += '{';
  for (const object::Member& member : sorted) {
    if (out.back() != '{') out += ',';
    AppendJSONString(out, member.key);
    out += ':';
    AppendSchema(member.value, depth, out);
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
  if (value.is_null() || depth > kSchemaDepthMax) {
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
    case Shape::kRules:
      return AppendRules(value, out);
    default:
      return AppendJSON(out, value);
  }
}

void AppendSchema(const Value& schema, int depth, std::string& out) {
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

std::string InternalSchemaJSON(const Value& schema) {
  std::string out;
  AppendSchema(schema, 0, out);
  return out;
}

}  // namespace keelson::registry::crd
