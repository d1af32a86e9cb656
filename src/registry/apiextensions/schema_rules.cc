#include "registry/apiextensions/schema_rules.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/strings.h"
#include "cel/program.h"
#include "cel/schema_rules.h"
#include "codec/json.h"
#include "object/json_text.h"
#include "registry/rules/rules.h"
#include "schema/structural/structural.h"
#include "validation/structural/custom_resource.h"
#include "validation/structural/object_pipeline.h"
#include "validation/structural_cel/rule_validator.h"

namespace keelson::registry::crd {
namespace {

using namespace rules;  // NOLINT
using validation::Forbidden;
using validation::Invalid;
using validation::Required;

constexpr std::string_view kAllowedAtRoot[] = {"description",
                                               "type",
                                               "format",
                                               "title",
                                               "maximum",
                                               "exclusiveMaximum",
                                               "minimum",
                                               "exclusiveMinimum",
                                               "maxLength",
                                               "minLength",
                                               "pattern",
                                               "maxItems",
                                               "minItems",
                                               "uniqueItems",
                                               "multipleOf",
                                               "required",
                                               "items",
                                               "properties",
                                               "externalDocs",
                                               "example",
                                               "x-kubernetes-preserve-unknown-fields",
                                               "x-kubernetes-validations"};
constexpr std::string_view kAllowedAtRootText =
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems "
    "MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";

std::vector<object::Member> Sorted(const Value& map) {
  std::vector<object::Member> members(map.members().begin(), map.members().end());
  std::ranges::sort(members, {}, &object::Member::key);
  return members;
}

bool HasLineBreak(std::string_view text) { return text.find_first_of("\n\r") != std::string_view::npos; }

// Context that a part of the schema inherits.
struct Context {
  bool is_root = false;
  bool inside_metadata = false;
  std::string forbidden_defaults;  // why defaults are forbidden here; "" if allowed
  bool rule_texts = true;          // rules are checked here; false: they are compiled, with all their checks
  int depth = 0;
};

void ValidateStandard(const Value& schema, const Context& context, const FieldPath& path, FieldErrors& errors) {
  const std::string_view type = schema["type"].as_string();
  if (!type.empty())
    CheckOneOf(type, {"array", "boolean", "integer", "number", "object", "string"}, path.Child("type"), errors);
  if (!schema["default"].is_null() && !context.forbidden_defaults.empty()) {
    errors.push_back(Forbidden(path.Child("default"), "must not be set " + context.forbidden_defaults));
  }
  if (!schema["id"].as_string().empty()) errors.push_back(Forbidden(path.Child("id"), "id is not supported"));
  for (const std::string_view field : {"additionalItems", "patternProperties", "definitions", "dependencies", "$ref"}) {
    const Value value = schema[field];
    const bool set = field == "patternProperties" || field == "definitions" ? !value.empty() : !value.is_null();
    if (set) errors.push_back(Forbidden(path.Child(field), std::string(field) + " is not supported"));
  }
  if (type == "null")
    errors.push_back(Forbidden(path.Child("type"), "type cannot be set to null, use nullable as an alternative"));
  if (schema["items"].is_list() && !schema["items"].empty()) {
    errors.push_back(Forbidden(path.Child("items"), "items must be a schema object and not an array"));
  }
  if (context.inside_metadata && schema["x-kubernetes-embedded-resource"].as_bool()) {
    errors.push_back(
        Forbidden(path.Child("x-kubernetes-embedded-resource"), "must not be used inside of resource meta"));
  }
}

void ValidateListMap(const Value& schema, const FieldPath& path, FieldErrors& errors) {
  const Value keys = schema["x-kubernetes-list-map-keys"];
  const Value items = schema["items"];
  const FieldPath keys_path = path.Child("x-kubernetes-list-map-keys");
  const FieldPath items_path = path.Child("items");
  if (keys.empty()) errors.push_back(Required(keys_path, "must not be empty if x-kubernetes-list-type is map"));
  if (items.is_null()) errors.push_back(Required(items_path, "must have a schema if x-kubernetes-list-type is map"));
  if (items.is_list())
    errors.push_back(Invalid(items_path, items, "must only have a single schema if x-kubernetes-list-type is map"));
  if (!items.is_map()) return;
  const std::string_view type = items["type"].as_string();
  if (type != "object") {
    errors.push_back(
        Invalid(items_path.Child("type"), type, "must be object if parent array's x-kubernetes-list-type is map"));
    return;
  }
  const FieldPath properties = items_path.Child("properties");
  std::set<std::string_view> seen;
  for (const Value& key : keys.items()) {
    if (!items["properties"].Has(key.as_string())) {
      errors.push_back(Invalid(keys_path, keys, "entries must all be names of item properties"));
    } else if (OneOf(items["properties"][key.as_string()]["type"].as_string(), {"array", "object"})) {
      const FieldPath property = properties.Key(key.as_string());
      errors.push_back(Invalid(property.Child("type"), type,
                               "must be a scalar type if parent array's x-kubernetes-list-type is map"));
    }
    if (!seen.insert(key.as_string()).second)
      errors.push_back(Invalid(keys_path, keys, "must not contain duplicate entries"));
  }
}

// Items of sets and maps must be non-nullable and comparable.
void ValidateKeysOfSetsAndMaps(const Value& schema, const FieldPath& path, FieldErrors& errors) {
  const std::string_view list_type = schema["x-kubernetes-list-type"].as_string();
  const Value items = schema["items"];
  if (!items.is_map() || (list_type != "set" && list_type != "map")) return;
  const FieldPath items_path = path.Child("items");
  if (items["nullable"].as_bool()) {
    errors.push_back(Forbidden(items_path.Child("nullable"),
                               "cannot be nullable when x-kubernetes-list-type is " + std::string(list_type)));
  }
  if (list_type != "map") return;
  const FieldPath properties = items_path.Child("properties");
  for (const Value& key : schema["x-kubernetes-list-map-keys"].items()) {
    const Value property = items["properties"][key.as_string()];
    if (!property.is_map()) continue;
    const FieldPath at = properties.Key(key.as_string());
    const bool required = std::ranges::any_of(items["required"].items(),
                                              [&](const Value& name) { return name.as_string() == key.as_string(); });
    if (!required && property["default"].is_null()) {
      errors.push_back(Required(
          at.Child("default"),
          "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"));
    }
    if (property["nullable"].as_bool()) {
      errors.push_back(
          Forbidden(at.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"));
    }
  }
}

void RequireTypeFor(const Value& schema, std::string_view extension, std::string_view wanted, const FieldPath& path,
                    FieldErrors& errors) {
  const std::string_view type = schema["type"].as_string();
  if (schema[extension].is_null() || type == wanted) return;
  const std::string detail = "must be " + std::string(wanted) + " if " + std::string(extension) + " is specified";
  errors.push_back(type.empty() ? Required(path.Child("type"), detail) : Invalid(path.Child("type"), type, detail));
}

void ValidateTopology(const Value& schema, const FieldPath& path, FieldErrors& errors) {
  if (const Value preserve = schema["x-kubernetes-preserve-unknown-fields"];
      preserve.is_bool() && !preserve.as_bool()) {
    errors.push_back(
        Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), preserve, "must be true or undefined"));
  }
  const Value map_type = schema["x-kubernetes-map-type"];
  RequireTypeFor(schema, "x-kubernetes-map-type", "object", path, errors);
  if (!map_type.is_null())
    CheckOneOf(map_type.as_string(), {"atomic", "granular"}, path.Child("x-kubernetes-map-type"), errors);
  const Value list_type = schema["x-kubernetes-list-type"];
  const FieldPath list_path = path.Child("x-kubernetes-list-type");
  RequireTypeFor(schema, "x-kubernetes-list-type", "array", path, errors);
  const Value items = schema["items"];
  if (list_type.as_string() == "set" && schema["type"].as_string() == "array" && items.is_map()) {
    const FieldPath items_path = path.Child("items");
    constexpr std::string_view kAtomic = "must be atomic as item of a list with x-kubernetes-list-type=set";
    const std::string_view item_type = items["type"].as_string();
    const Value item_list = items["x-kubernetes-list-type"];
    if (item_type == "array" && !item_list.is_null() && item_list.as_string() != "atomic") {
      errors.push_back(Invalid(items_path.Child("x-kubernetes-list-type"), item_list, kAtomic));
    }
    if (item_type == "object" && items["x-kubernetes-map-type"].as_string() != "atomic") {
      errors.push_back(Invalid(items_path.Child("x-kubernetes-map-type"), item_list, kAtomic));
    }
  }
  if (!list_type.is_null()) CheckOneOf(list_type.as_string(), {"atomic", "set", "map"}, list_path, errors);
  if (!schema["x-kubernetes-list-map-keys"].empty() && list_type.as_string() != "map") {
    constexpr std::string_view kMap = "must be map if x-kubernetes-list-map-keys is non-empty";
    errors.push_back(list_type.is_null() ? Required(list_path, kMap) : Invalid(list_path, list_type.as_string(), kMap));
  }
  if (list_type.as_string() == "map") ValidateListMap(schema, path, errors);
  ValidateKeysOfSetsAndMaps(schema, path, errors);
}

void ValidateReason(const Value& rule, const FieldPath& at, FieldErrors& errors) {
  CheckOneOf(rule["reason"].as_string(),
             {"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"},
             at.Child("reason"), errors);
}

void ValidateRuleText(const Value& rule, const Value& schema, const FieldPath& at, FieldErrors& errors) {
  const std::string_view text = base::Trim(rule["rule"].as_string());
  const std::string_view message = rule["message"].as_string();
  const std::string_view trimmed = base::Trim(message);
  if (text.empty()) {
    errors.push_back(Required(at.Child("rule"), "rule is not specified"));
  } else if (!message.empty() && trimmed.empty()) {
    errors.push_back(Invalid(at.Child("message"), message, "must be non-empty if specified"));
  } else if (HasLineBreak(trimmed)) {
    errors.push_back(Invalid(at.Child("message"), message, "must not contain line breaks"));
  } else if (HasLineBreak(text) && trimmed.empty()) {
    errors.push_back(Required(at.Child("message"), "message must be specified if rule contains line breaks"));
  }
  const std::string_view expression = rule["messageExpression"].as_string();
  if (!expression.empty() && base::Trim(expression).empty()) {
    errors.push_back(Required(at.Child("messageExpression"), "messageExpression must be non-empty if specified"));
  }
  if (!rule["reason"].is_null()) ValidateReason(rule, at, errors);
  const std::string_view field_path = rule["fieldPath"].as_string();
  if (field_path.empty()) return;
  if (base::Trim(field_path).empty())
    errors.push_back(Invalid(at.Child("fieldPath"), field_path, "must be non-empty if specified"));
  if (HasLineBreak(field_path))
    errors.push_back(Invalid(at.Child("fieldPath"), field_path, "must not contain line breaks"));
  if (!FollowFieldPath(field_path, schema, true).problem.empty())
    errors.push_back(Invalid(at.Child("fieldPath"), field_path, "must be a valid path"));
}

void ValidateNode(const Value& schema, const Context& context, const FieldPath& path, FieldErrors& errors);

void ValidateList(const Value& list, Context context, const FieldPath& path, FieldErrors& errors) {
  context.is_root = false;
  std::int64_t index = 0;
  for (const Value& item : list.items()) ValidateNode(item, context, path.Index(index++), errors);
}

void ValidateChildren(const Value& schema, const Context& context, const FieldPath& path, FieldErrors& errors) {
  Context child = context;
  child.is_root = false;
  if (const Value additional = schema["additionalProperties"]; !additional.is_null()) {
    const FieldPath at = path.Child("additionalProperties");
    if (!schema["properties"].empty() && (additional.is_map() || !additional.as_bool())) {
      errors.push_back(Forbidden(at, "additionalProperties and properties are mutual exclusive"));
    }
    Context inside = child;
    if (context.inside_metadata) inside.forbidden_defaults = "inside additionalProperties applying to object metadata";
    if (additional.is_map()) ValidateNode(additional, inside, at, errors);
  }
  const FieldPath properties = path.Child("properties");
  for (const auto& member : Sorted(schema["properties"])) {
    Context inside = child;
    if ((context.is_root || schema["x-kubernetes-embedded-resource"].as_bool()) &&
        OneOf(member.key, {"metadata", "kind", "apiVersion"})) {
      inside.inside_metadata = true;
      if (context.is_root) inside.forbidden_defaults = "in top-level " + std::string(member.key);
    }
    ValidateNode(member.value, inside, properties.Key(member.key), errors);
  }
  if (!schema["not"].is_null()) ValidateNode(schema["not"], child, path.Child("not"), errors);
  for (const std::string_view field : {"allOf", "oneOf", "anyOf"})
    ValidateList(schema[field], child, path.Child(field), errors);
  const FieldPath definitions = path.Child("definitions");
  for (const auto& member : Sorted(schema["definitions"]))
    ValidateNode(member.value, child, definitions.Key(member.key), errors);
  const Value items = schema["items"];
  if (items.is_map()) ValidateNode(items, child, path.Child("items"), errors);
  if (items.is_list()) ValidateList(items, child, path.Child("items"), errors);
  const FieldPath dependencies = path.Child("dependencies");
  for (const auto& member : Sorted(schema["dependencies"])) {
    if (member.value.is_map()) ValidateNode(member.value, child, dependencies.Key(member.key), errors);
  }
}

void ValidateNode(const Value& schema, const Context& context, const FieldPath& path, FieldErrors& errors) {
  if (!schema.is_map()) return;
  if (context.depth >= kSchemaDepthMax) {
    errors.push_back(Forbidden(path, "must not be nested deeper than 256 levels"));
    return;
  }
  ValidateStandard(schema, context, path, errors);
  if (schema["uniqueItems"].as_bool()) {
    errors.push_back(Forbidden(path.Child("uniqueItems"),
                               "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"));
  }
  Context inside = context;
  ++inside.depth;
  ValidateChildren(schema, inside, path, errors);
  ValidateTopology(schema, path, errors);
  const FieldPath rules_path = path.Child("x-kubernetes-validations");
  std::int64_t index = 0;
  for (const Value& rule : schema["x-kubernetes-validations"].items()) {
    const FieldPath at = rules_path.Index(index++);
    if (context.rule_texts) {
      ValidateRuleText(rule, schema, at, errors);
    } else if (rule["reason"].is_string() && rule["reason"].as_string().empty()) {
      ValidateReason(rule, at, errors);  // a compiled schema does not distinguish "" from absent
    }
  }
}

// ---- Defaults

namespace structural = validation::structural;

void ValidateDefault(base::Arena& arena, const Value& value, structural::Node node, bool embedded, const FieldPath& at,
                     FieldErrors& errors) {
  const Value pruned = value.Clone(arena);
  structural::Prune(arena, pruned, node, embedded, nullptr);
  if (!(pruned == value)) errors.push_back(Invalid(at, value, "must not have unknown fields"));
  const Value coerced = value.Clone(arena);
  if (auto malformed = structural::CoerceEmbedded(arena, coerced, node, embedded, false, at, nullptr)) {
    errors.push_back(*std::move(malformed));
    return;
  }
  const std::size_t before = errors.size();
  structural::ValidateEmbedded(arena, value, node, embedded, at, errors);
  if (errors.size() == before) structural::ValidateDefaultValue(arena, value, node, at, errors);
}

// A default must satisfy the rules of its own schema, as an update of itself and as a new value.
void ValidateDefaultRules(base::Arena& arena, const Value& value, const Value& schema, schema::structural::Pool& pool,
                          const FieldPath& at, FieldErrors& errors) {
  // A validator is of a whole object: the value becomes its one field.
  constexpr std::string_view kField = "value";
  Value whole = Value::Map(arena);
  whole.Set(arena, "type", "object");
  whole.EnsureMap(arena, "properties").Set(arena, kField, schema);
  auto built = pool.Build(whole);
  if (!built.ok()) return;
  const auto rules = structural::RuleValidator::New(*built);
  if (!rules) return;
  Value object = Value::Map(arena);
  object.Set(arena, kField, value);
  auto result = rules->Validate(arena, object, &object);
  if (result.errors.empty()) result = rules->Validate(arena, object, nullptr);
  const std::string base = at.ToString();
  for (auto& error : result.errors) {
    if (error.field.starts_with(kField)) error.field = base + error.field.substr(kField.size());
    errors.push_back(std::move(error));
  }
}

// Defaults must be valid by their schema, and pruned. `node` is the same place of the compiled schema as
// `schema`; `embedded`: its apiVersion, kind and metadata are those of a resource.
void ValidateDefaults(base::Arena& arena, const Value& schema, structural::Node node, schema::structural::Pool& pool,
                      bool root, bool inside_metadata, const FieldPath& path, FieldErrors& errors) {
  if (!schema.is_map() || !node) return;
  const bool embedded = root || node.embedded_resource();
  if (node.default_json()) {
    const FieldPath at = path.Child("default");
    const Value value = node.DefaultValue(arena);
    const std::size_t before = errors.size();
    if (inside_metadata) {
      structural::ValidateDefaultValue(arena, value, node, at, errors);
    } else {
      ValidateDefault(arena, value, node, embedded, at, errors);
    }
    if (errors.size() == before && node.has_rules_below()) ValidateDefaultRules(arena, value, schema, pool, at, errors);
  }
  if (schema["items"].is_map())
    ValidateDefaults(arena, schema["items"], node.items(), pool, false, inside_metadata, path.Child("items"), errors);
  const FieldPath properties = path.Child("properties");
  for (const auto& member : Sorted(schema["properties"])) {
    const bool meta = embedded && OneOf(member.key, {"metadata", "apiVersion", "kind"});
    ValidateDefaults(arena, member.value, node.Property(member.key), pool, false, inside_metadata || meta,
                     properties.Key(member.key), errors);
  }
}

// Texts, types and cost of all rules.
void ValidateRules(structural::Node root, const FieldPath& path, FieldErrors& errors) {
  using Type = cel::SchemaRuleError::Type;
  const std::string base = path.ToString();
  const auto type_of = [](Type type) {
    switch (type) {
      case Type::kForbidden:
        return meta::FieldError::Type::kForbidden;
      case Type::kRequired:
        return meta::FieldError::Type::kRequired;
      case Type::kNotSupported:
        return meta::FieldError::Type::kNotSupported;
      case Type::kInternal:
        return meta::FieldError::Type::kInternal;
      case Type::kInvalid:
        break;
    }
    return meta::FieldError::Type::kInvalid;
  };
  const auto instantiate = [](const cel::EnvironmentPtr& env, const cel::Ast& ast) {
    auto program = cel::Program::New(env, ast);
    return program.ok() ? std::string() : program.error();
  };
  base::Arena arena;
  for (auto& error : cel::ValidateSchemaRules(root, base, cel::ExpressionMode::kNew, instantiate)) {
    // Texts are shown as Go quotes them, not as JSON.
    if (error.value.starts_with('"')) {
      if (const auto text = object::ParseJSON(arena, error.value)) error.value = base::GoQuote(text->as_string());
    }
    errors.push_back({type_of(error.type), base + error.field, std::move(error.value), std::move(error.detail)});
  }
}

// The error of upstream's NewStructural; the forbidden fields themselves are reported elsewhere.
std::string UnsupportedField(const Value& schema, int depth) {
  if (!schema.is_map() || depth >= kSchemaDepthMax) return {};
  const auto unsupported = [](std::string_view field) {
    return "OpenAPIV3Schema '" + std::string(field) + "' is not supported";
  };
  if (!schema["id"].as_string().empty()) return unsupported("id");
  if (!schema["$schema"].as_string().empty()) return unsupported("schema");
  if (!schema["$ref"].as_string().empty()) return unsupported("$ref");
  for (const std::string_view field : {"patternProperties", "dependencies"}) {
    if (!schema[field].empty()) return unsupported(field);
  }
  if (!schema["additionalItems"].is_null()) return unsupported("additionalItems");
  if (!schema["definitions"].empty()) return unsupported("definitions");
  if (schema["items"].is_list() && !schema["items"].empty())
    return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  std::string found = UnsupportedField(schema["items"], depth + 1);
  for (const auto& member : schema["properties"].members()) {
    if (found.empty()) found = UnsupportedField(member.value, depth + 1);
  }
  if (found.empty()) found = UnsupportedField(schema["additionalProperties"], depth + 1);
  for (const std::string_view field : {"allOf", "anyOf", "oneOf"}) {
    for (const Value& item : schema[field].items()) {
      if (found.empty()) found = UnsupportedField(item, depth + 1);
    }
  }
  return found.empty() ? UnsupportedField(schema["not"], depth + 1) : found;
}

// Whether Go's field of this name has its zero value: lists, maps and pointers that are set count even when they are
// empty.
bool IsUnset(std::string_view field, const Value& value) {
  const bool pointer = field == "$ref" || field == "x-kubernetes-preserve-unknown-fields" ||
                       field == "x-kubernetes-list-type" || field == "x-kubernetes-map-type";
  return value.is_null() || (!pointer && (value.is_string() || value.is_bool()) && IsZero(value));
}

}  // namespace

FieldPathResult FollowFieldPath(std::string_view json_path, const Value& schema, bool allow_array_notation) {
  FieldPathResult result;
  result.schema = schema;
  const auto step = [&](std::string_view name) {
    if (result.root.empty()) result.root = name;
    if (!result.schema["properties"].is_null()) {
      if (!result.schema["properties"].Has(name)) {
        result.problem = "does not refer to a valid field";
      } else {
        result.schema = result.schema["properties"][name];
      }
    } else if (result.schema["additionalProperties"].is_map()) {
      result.schema = result.schema["additionalProperties"];
    } else {
      result.problem = "does not refer to a valid field";
    }
  };
  while (!json_path.empty() && result.problem.empty()) {
    if (json_path[0] == '.') {
      json_path.remove_prefix(1);
      const auto end = std::min(json_path.find_first_of(".[]"), json_path.size());
      if (end == 0) {
        result.problem = json_path.empty() ? "unexpected end of JSON path" : "does not refer to a valid field";
        break;
      }
      step(json_path.substr(0, end));
      json_path.remove_prefix(end);
    } else if (json_path[0] == '[') {
      if (!allow_array_notation) {
        result.problem = "array notation is not allowed";
        break;
      }
      const auto close = json_path.find(']');
      const std::string_view quoted = json_path.substr(1, close == std::string_view::npos ? close : close - 1);
      if (close == std::string_view::npos) {
        result.problem = "unexpected end of JSON path";
      } else if (quoted.size() < 2 || quoted.front() != '\'' || quoted.back() != '\'') {
        result.problem = "expected single quoted string but got " + std::string(quoted);
      } else {
        step(quoted.substr(1, quoted.size() - 2));
        json_path.remove_prefix(close + 1);
      }
    } else {
      result.problem = "expected [ or . but got: " + std::string(json_path.substr(0, json_path.find_first_of(".[]")));
    }
  }
  return result;
}

void ForEachSchema(const Value& schema, const std::function<void(const Value& schema)>& visit) {
  std::vector<Value> waiting = {schema};
  while (!waiting.empty()) {
    const Value next = waiting.back();
    waiting.pop_back();
    if (next.is_list()) {
      for (const Value& item : next.items()) waiting.push_back(item);
    }
    if (!next.is_map()) continue;
    visit(next);
    for (const std::string_view field :
         {"items", "allOf", "anyOf", "oneOf", "not", "additionalProperties", "additionalItems"}) {
      waiting.push_back(next[field]);
    }
    for (const std::string_view field : {"properties", "patternProperties", "definitions", "dependencies"}) {
      for (const auto& member : next[field].members()) waiting.push_back(member.value);
    }
  }
}

void ValidateSchema(base::Arena& arena, const Value& schema, bool status, const FieldPath& path, FieldErrors& errors) {
  const std::size_t before = errors.size();
  if (status) {
    for (const auto& member : schema.members()) {
      if (IsUnset(member.key, member.value)) continue;
      if (member.key == "type" && member.value.as_string() != "object") {
        errors.push_back(Invalid(
            path.Child("type"), member.value,
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled"));
        break;
      }
      if (std::ranges::find(kAllowedAtRoot, member.key) == std::end(kAllowedAtRoot)) {
        errors.push_back(
            InvalidRendered(path, InternalSchemaJSON(schema),
                            "only " + std::string(kAllowedAtRootText) +
                                " fields are allowed at the root of the schema if the status subresource is enabled"));
        break;
      }
    }
  }
  if (schema["nullable"].as_bool())
    errors.push_back(Forbidden(path.Child("nullable"), "nullable cannot be true at the root"));
  const std::string unsupported = UnsupportedField(schema, 0);
  schema::structural::Pool pool;
  schema::structural::SchemaRef compiled;  // where rules can be compiled
  if (unsupported.empty()) {
    const std::size_t structural = errors.size();
    ValidateStructural(schema, path, errors);
    auto built = pool.Build(schema);
    if (errors.size() == structural && built.ok()) {
      ValidateDefaults(arena, schema, built->root(), pool, true, false, path, errors);
      if (errors.size() == structural) compiled = *std::move(built);
    }
  }
  ValidateNode(schema, Context{.is_root = true, .rule_texts = !compiled}, path, errors);
  if (compiled && compiled->root().has_rules_below()) ValidateRules(compiled->root(), path, errors);
  if (errors.size() == before && !unsupported.empty()) errors.push_back(Invalid(path, "", unsupported));
}

}  // namespace keelson::registry::crd
