#include "registry/apiextensions/schema_rules.h"

#include <algorithm>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "base/go_regex.h"
#include "base/hash.h"
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

bool HasLineBreak(std::string_view text) { return text.find_first_of("\n\r") != std::string_view::npos; }

// Context that a part of the schema inherits.
struct Context {
  bool is_root = false;
  bool inside_metadata = false;
  std::string forbidden_defaults;  // why defaults are forbidden here; "" if allowed
  // Receives the paths of nodes that have rules and no schema error at or below them. May be null.
  base::StringSet* sound = nullptr;
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
    errors.push_back(InvalidRendered(items_path, InternalItemsJSON(items),
                                     "must only have a single schema if x-kubernetes-list-type is map"));
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
    if (errors.full()) return;
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
  base::StringViewSet required_names;
  for (const Value& name : items["required"].items()) required_names.insert(name.as_string());
  for (const Value& key : schema["x-kubernetes-list-map-keys"].items()) {
    const Value property = items["properties"][key.as_string()];
    if (!property.is_map()) continue;
    const FieldPath at = properties.Key(key.as_string());
    if (!required_names.contains(key.as_string()) && property["default"].is_null()) {
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

// The error of NewStructural for this node alone, "" where there is none. Most of these fields have an error of their
// own, so this text is shown only where there is no other.
std::string OwnUnsupportedField(const Value& schema) {
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
  if (const Value preserve = schema["x-kubernetes-preserve-unknown-fields"]; preserve.is_bool() && !preserve.as_bool())
    return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined";
  if (schema["items"].is_list() && !schema["items"].empty())
    return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  return {};
}

// The error of NewStructural for a whole schema.
std::string UnsupportedFieldBelow(const Value& schema, int depth) {
  if (!schema.is_map() || depth >= kSchemaDepthMax) return {};
  std::string found = OwnUnsupportedField(schema);
  if (found.empty()) found = UnsupportedFieldBelow(schema["not"], depth + 1);
  for (const std::string_view field : {"allOf", "anyOf", "oneOf"}) {
    for (const Value& item : schema[field].items()) {
      if (found.empty()) found = UnsupportedFieldBelow(item, depth + 1);
    }
  }
  if (found.empty()) found = UnsupportedFieldBelow(schema["items"], depth + 1);
  for (const auto& member : Sorted(schema["properties"])) {
    if (found.empty()) found = UnsupportedFieldBelow(member.value, depth + 1);
  }
  return found.empty() ? UnsupportedFieldBelow(schema["additionalProperties"], depth + 1) : found;
}

void ValidateReason(const Value& rule, const FieldPath& at, FieldErrors& errors) {
  CheckOneOf(rule["reason"].as_string(),
             {"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"},
             at.Child("reason"), errors);
}

// `structural`: NewStructural makes a schema of this node.
void ValidateRuleText(const Value& rule, const Value& schema, bool structural, const FieldPath& at,
                      FieldErrors& errors) {
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
  // pathValid: every path is valid where no structural schema can be made.
  if (structural && !FollowFieldPath(field_path, schema, true).problem.empty())
    errors.push_back(Invalid(at.Child("fieldPath"), field_path, "must be a valid path"));
}

// Whether NewStructural makes a schema of the node, as for the functions below.
bool ValidateNode(const Value& schema, const Context& context, const FieldPath& path, FieldErrors& errors);

bool ValidateList(const Value& list, const Context& context, const FieldPath& path, FieldErrors& errors) {
  bool structural = true;
  std::int64_t index = 0;
  for (const Value& item : list.items())
    structural = ValidateNode(item, context, path.Index(index++), errors) && structural;
  return structural;
}

bool ValidateChildren(const Value& schema, const Context& context, const FieldPath& path, FieldErrors& errors) {
  Context child = context;
  child.is_root = false;
  Context nested = child;  // inside combinations rules are not compiled
  nested.sound = nullptr;
  bool structural = true;
  if (const Value additional = schema["additionalProperties"]; !additional.is_null()) {
    const FieldPath at = path.Child("additionalProperties");
    if (!schema["properties"].empty() && (additional.is_map() || !additional.as_bool())) {
      errors.push_back(Forbidden(at, "additionalProperties and properties are mutual exclusive"));
    }
    Context inside = child;
    if (context.inside_metadata) inside.forbidden_defaults = "inside additionalProperties applying to object metadata";
    if (additional.is_map()) structural = ValidateNode(additional, inside, at, errors);
  }
  const FieldPath properties = path.Child("properties");
  for (const auto& member : Sorted(schema["properties"])) {
    Context inside = child;
    if ((context.is_root || schema["x-kubernetes-embedded-resource"].as_bool()) &&
        OneOf(member.key, {"metadata", "kind", "apiVersion"})) {
      inside.inside_metadata = true;
      if (context.is_root) inside.forbidden_defaults = "in top-level " + std::string(member.key);
    }
    structural = ValidateNode(member.value, inside, properties.Key(member.key), errors) && structural;
  }
  structural = ValidateNode(schema["not"], nested, path.Child("not"), errors) && structural;
  for (const std::string_view field : {"allOf", "oneOf", "anyOf"})
    structural = ValidateList(schema[field], nested, path.Child(field), errors) && structural;
  const FieldPath definitions = path.Child("definitions");
  for (const auto& member : Sorted(schema["definitions"]))
    ValidateNode(member.value, nested, definitions.Key(member.key), errors);
  const Value items = schema["items"];
  if (items.is_map()) structural = ValidateNode(items, child, path.Child("items"), errors) && structural;
  if (items.is_list()) ValidateList(items, child, path.Child("items"), errors);
  const FieldPath dependencies = path.Child("dependencies");
  for (const auto& member : Sorted(schema["dependencies"])) {
    if (member.value.is_map()) ValidateNode(member.value, nested, dependencies.Key(member.key), errors);
  }
  return structural;
}

bool ValidateNode(const Value& schema, const Context& context, const FieldPath& path, FieldErrors& errors) {
  if (!schema.is_map()) return true;
  if (errors.full()) {  // Texts of further errors would only be dropped.
    errors.push_back({});
    return true;
  }
  if (context.depth >= kSchemaDepthMax) {
    errors.push_back(Forbidden(path, "must not be nested deeper than 256 levels"));
    return true;
  }
  const std::size_t before = errors.size();
  ValidateStandard(schema, context, path, errors);
  if (schema["uniqueItems"].as_bool()) {
    errors.push_back(Forbidden(path.Child("uniqueItems"),
                               "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"));
  }
  Context inside = context;
  ++inside.depth;
  const bool structural = ValidateChildren(schema, inside, path, errors) && OwnUnsupportedField(schema).empty();
  ValidateTopology(schema, path, errors);
  const FieldPath rules_path = path.Child("x-kubernetes-validations");
  std::int64_t index = 0;
  for (const Value& rule : schema["x-kubernetes-validations"].items()) {
    ValidateRuleText(rule, schema, structural, rules_path.Index(index++), errors);
  }
  if (context.sound != nullptr && index > 0 && errors.size() == before) context.sound->insert(path.ToString());
  return structural;
}

// ---- Defaults

namespace structural = validation::structural;

// Work spent so far on validating the defaults of one definition, against the bounds named below.
struct DefaultsSpent {
  std::size_t steps = 0;  // of kValidationStepsMax
  std::size_t rules = 0;  // compiled, of kDefaultRulesMax
  std::size_t bytes = 0;  // of schemas compiled for rules, of kDefaultSchemasMax
};

std::string_view OpenAPITypeOf(const Value& value) {
  if (value.is_map()) return "object";
  if (value.is_list()) return "array";
  if (value.is_string()) return "string";
  if (value.is_bool()) return "boolean";
  return value.is_int() ? "integer" : "number";
}

// The value of a default by its schema. No value is of a type that OpenAPI does not have, which compiled schemas do not
// keep.
void ValidateDefaultType(base::Arena& arena, const Value& value, const Value& schema, structural::Node node,
                         const FieldPath& at, DefaultsSpent& spent, FieldErrors& errors) {
  const std::string type(schema["type"].as_string());
  if (type.empty() || node.type() != schema::structural::NodeType::kNone)
    return structural::ValidateDefaultValue(arena, value, node, at, spent.steps, errors);
  const std::string_view got = OpenAPITypeOf(value);
  errors.push_back(
      validation::TypeInvalid(at, Value(got), " in body must be of type " + type + ": " + base::GoQuote(got)));
}

void ValidateDefault(base::Arena& arena, const Value& value, const Value& schema, structural::Node node, bool embedded,
                     const FieldPath& at, DefaultsSpent& spent, FieldErrors& errors) {
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
  if (errors.size() == before) ValidateDefaultType(arena, value, schema, node, at, spent, errors);
}

// A default must satisfy the rules of its own schema, as an update of itself and as a new value.
void ValidateDefaultRules(base::Arena& arena, const Value& value, const Value& schema, schema::structural::Pool& pool,
                          const FieldPath& at, DefaultsSpent& spent, FieldErrors& errors) {
  ForEachSchema(schema, [&](const Value& below) { spent.rules += below["x-kubernetes-validations"].size(); });
  if (spent.rules > kDefaultRulesMax || spent.bytes > kDefaultSchemasMax) {
    errors.push_back(Forbidden(at, "too many defaults have validation rules below them"));
    return;
  }
  // A validator is of a whole object: the value becomes its one field.
  constexpr std::string_view kField = "value";
  Value whole = Value::Map(arena);
  whole.Set(arena, "type", "object");
  whole.EnsureMap(arena, "properties").Set(arena, kField, schema);
  auto built = pool.Build(whole);
  if (!built.ok()) return;
  spent.bytes += built->get()->total_bytes();
  if (!cel::DeclTypes().Convert(built->get()->root().Property(kField), false)) {
    errors.push_back(
        Invalid(at, "", "rule compiler initialization error: failed to convert to declType for CEL validation rules"));
    return;
  }
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

// The resource that surrounds a default inside apiVersion, kind or metadata: the steps from the resource down to the
// place of the default (SurroundingObjectFunc upstream).
struct Surrounding {
  structural::Node root;                // schema of the resource
  std::vector<std::string_view> steps;  // names of properties; "" for an item of a list

  Value Around(base::Arena& arena, const Value& value) const {
    Value inner = value;
    for (const std::string_view step : std::views::reverse(steps)) {
      Value outer = step.empty() ? Value::List(arena) : Value::Map(arena);
      if (step.empty()) {
        outer.Append(arena, inner);
      } else {
        outer.Set(arena, step, inner);
      }
      inner = outer;
    }
    for (const auto& [field, text] : {std::pair("apiVersion", "validation/v1"), std::pair("kind", "Validation")}) {
      if (!inner.Has(field)) inner.Set(arena, field, text);
    }
    return inner;
  }
};

// A default inside apiVersion, kind or metadata must give a resource with valid metadata.
void ValidateMetadataDefault(base::Arena& arena, const Value& value, const Value& schema, structural::Node node,
                             const Surrounding& surrounding, const FieldPath& at, DefaultsSpent& spent,
                             FieldErrors& errors) {
  const Value resource = surrounding.Around(arena, value.Clone(arena));
  FieldErrors found;
  if (auto malformed =
          structural::CoerceEmbedded(arena, resource, surrounding.root, true, false, FieldPath(), nullptr)) {
    found.push_back(*std::move(malformed));
  } else {
    structural::ValidateEmbedded(arena, resource, surrounding.root, true, FieldPath(), found);
  }
  if (found.empty()) return ValidateDefaultType(arena, value, schema, node, at, spent, errors);
  std::string texts = found[0].ToString();
  for (std::size_t i = 1; i < found.size(); ++i) texts += ", " + found[i].ToString();
  errors.push_back(
      Invalid(at, value, "must result in valid metadata: " + (found.size() == 1 ? texts : "[" + texts + "]")));
}

// Defaults must be valid by the schema they are part of, and pruned. `node` is the same place of the compiled schema as
// `schema`; `surrounding` is not null inside apiVersion, kind or metadata of a resource.
void ValidateDefaults(base::Arena& arena, const Value& schema, structural::Node node, schema::structural::Pool& pool,
                      bool root, Surrounding surrounding, bool inside_metadata, const FieldPath& path,
                      DefaultsSpent& spent, FieldErrors& errors) {
  if (!schema.is_map() || !node || errors.full()) return;
  const bool embedded = root || node.embedded_resource();
  if (embedded) {
    surrounding = {.root = node, .steps = {}};
    inside_metadata = false;
  }
  if (node.default_json()) {
    const FieldPath at = path.Child("default");
    const Value value = node.DefaultValue(arena);
    const std::size_t before = errors.size();
    if (inside_metadata) {
      ValidateMetadataDefault(arena, value, schema, node, surrounding, at, spent, errors);
    } else {
      ValidateDefault(arena, value, schema, node, embedded, at, spent, errors);
    }
    if (errors.size() == before && node.has_rules_below())
      ValidateDefaultRules(arena, value, schema, pool, at, spent, errors);
  }
  const auto below = [&](const Value& child, structural::Node child_node, std::string_view step, bool inside,
                         const FieldPath& at) {
    surrounding.steps.push_back(step);
    ValidateDefaults(arena, child, child_node, pool, false, surrounding, inside, at, spent, errors);
    surrounding.steps.pop_back();
  };
  if (schema["items"].is_map()) below(schema["items"], node.items(), "", inside_metadata, path.Child("items"));
  const FieldPath properties = path.Child("properties");
  for (const auto& member : Sorted(schema["properties"])) {
    const bool meta = embedded && OneOf(member.key, {"metadata", "apiVersion", "kind"});
    below(member.value, node.Property(member.key), member.key, inside_metadata || meta, properties.Key(member.key));
  }
}

// Types and cost of the rules at the nodes of `sound` (paths). Rules at or above a schema error are not compiled: their
// errors would vanish with it.
void ValidateRules(structural::Node root, const base::StringSet& sound, const FieldPath& path, FieldErrors& errors) {
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
  const auto skip = [&](std::string_view field) { return !sound.contains(base + std::string(field)); };
  for (auto& error : cel::ValidateSchemaRules(root, base, cel::ExpressionMode::kNew, instantiate, {}, skip)) {
    // Texts are shown as Go quotes them, not as JSON.
    if (error.value.starts_with('"')) {
      if (const auto text = object::ParseJSON(arena, error.value)) error.value = base::GoQuote(text->as_string());
    }
    errors.push_back({type_of(error.type), base + error.field, std::move(error.value), std::move(error.detail)});
  }
}

}  // namespace

bool ValidateBounds(const Value& versions, const FieldPath& path, FieldErrors& errors) {
  const std::size_t before = errors.size();
  if (versions.size() > kVersionsMax) {
    errors.push_back(validation::TooMany(path, static_cast<std::int64_t>(versions.size()), kVersionsMax));
    return false;
  }
  std::size_t schemas = 0, rules = 0, keys = 0, instructions = 0;
  base::StringViewMap<std::size_t> patterns;
  const auto visit = [&](const Value& schema) {
    ++schemas;
    rules += schema["x-kubernetes-validations"].size();
    keys = std::max(keys, schema["x-kubernetes-list-map-keys"].size());
    const std::string_view pattern = schema["pattern"].as_string();
    if (pattern.empty() || instructions > kPatternInstructionsMax) return;
    const auto [found, added] = patterns.try_emplace(pattern);
    if (added) found->second = base::GoRegex(pattern).instructions();
    instructions += found->second;
  };
  std::size_t columns = 0;
  for (const Value& version : versions.items()) {
    ForEachSchema(version["schema"]["openAPIV3Schema"], visit);
    columns = std::max(columns, version["additionalPrinterColumns"].size());
  }
  const auto refuse = [&](std::size_t count, std::size_t max, std::string_view noun) {
    if (count <= max) return;
    errors.push_back(Forbidden(path, "must not have more than " + std::to_string(max) + " " + std::string(noun)));
  };
  refuse(schemas, kSchemasMax, "schemas in all");
  refuse(rules, kRulesMax, "x-kubernetes-validations in all");
  refuse(columns, kColumnsMax, "additionalPrinterColumns in a version");
  refuse(keys, kListMapKeysMax, "x-kubernetes-list-map-keys in a list");
  refuse(instructions, kPatternInstructionsMax, "instructions in all of their compiled patterns");
  return errors.size() == before;
}

std::string UnsupportedField(const Value& schema) { return UnsupportedFieldBelow(schema, 0); }

FieldPathResult FollowFieldPath(std::string_view json_path, const Value& schema, bool allow_array_notation) {
  FieldPathResult result;
  result.schema = schema;
  const auto fail = [&](std::string problem) {
    result.problem = std::move(problem);
    return result;
  };
  constexpr std::string_view kNoField = "does not refer to a valid field";
  constexpr std::string_view kEnd = "unexpected end of JSON path";
  const auto step = [&](std::string_view name) {
    if (result.root.empty()) result.root = name;
    const Value properties = result.schema["properties"];
    if (!properties.empty()) {
      if (!properties.Has(name)) return false;
      result.schema = properties[name];
      return true;
    }
    const Value additional = result.schema["additionalProperties"];
    result.schema = additional.is_map() ? additional : Value();
    return !additional.is_null();
  };
  while (const auto token = cel::NextFieldPathToken(json_path)) {
    if (*token != "." && *token != "[") return fail("expected [ or . but got: " + std::string(*token));
    if (*token == "[" && !allow_array_notation) return fail("array notation is not allowed");
    const auto name = cel::NextFieldPathToken(json_path);
    if (!name) return fail(std::string(kEnd));
    if (*token == ".") {
      if (!step(*name)) return fail(std::string(kNoField));
      continue;
    }
    if (name->size() < 2 || name->front() != '\'' || name->back() != '\'')
      return fail("expected single quoted string but got " + std::string(*name));
    const auto key = cel::UnescapeSingleQuoted(name->substr(1, name->size() - 2));
    if (!key) return fail("invalid string literal: invalid single quoted string");
    if (!step(*key)) return fail(std::string(kNoField));
    const auto close = cel::NextFieldPathToken(json_path);
    if (!close) return fail(std::string(kEnd));
    if (*close != "]") return fail("expected ] but got " + std::string(*close));
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
    for (const std::string_view field : SetFields(schema)) {
      if (field == "type" && schema[field].as_string() != "object") {
        errors.push_back(Invalid(
            path.Child("type"), schema[field],
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled"));
        break;
      }
      if (std::ranges::find(kAllowedAtRoot, field) == std::end(kAllowedAtRoot)) {
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
  const std::string unsupported = UnsupportedField(schema);
  schema::structural::Pool pool;
  schema::structural::SchemaRef compiled;  // where rules can be compiled
  if (unsupported.empty()) {
    const std::size_t structural = errors.size();
    ValidateStructural(schema, path, errors);
    auto built = pool.Build(schema);
    if (errors.size() == structural && built.ok()) {
      DefaultsSpent spent;
      ValidateDefaults(arena, schema, built->root(), pool, true, {}, false, path, spent, errors);
      if (errors.size() == structural) compiled = *std::move(built);
    }
  }
  base::StringSet sound;
  ValidateNode(schema, Context{.is_root = true, .sound = compiled ? &sound : nullptr}, path, errors);
  if (!sound.empty()) ValidateRules(compiled->root(), sound, path, errors);
  if (errors.size() == before && !unsupported.empty()) errors.push_back(Invalid(path, "", unsupported));
}

}  // namespace keelson::registry::crd
