#include "schema/structural/openapi.h"

#include <algorithm>

#include "base/arena.h"
#include "object/json_text.h"
#include "object/value.h"
#include "schema/structural/structural.h"

namespace keelson::schema::structural {
namespace {

using base::Arena;
using object::Member;
using object::Value;

constexpr std::string_view kConventions =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";
constexpr std::string_view kAPIVersionText =
    "Version defines the versioned schema of this representation of an object. Servers should convert recognized "
    "schemas to the latest internal value, and may reject unrecognized values. More info: ";
constexpr std::string_view kKindText =
    "ind is a string value representing the REST resource this object represents. Servers may infer this from the "
    "endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: ";
constexpr std::string_view kMetaPackage = "io.k8s.apimachinery.pkg.apis.meta.v1.";

std::string Reversed(std::string_view group) {
  std::string reversed;
  while (!group.empty()) {
    const std::size_t dot = group.rfind('.');
    const std::string_view part = dot == std::string_view::npos ? group : group.substr(dot + 1);
    reversed += (reversed.empty() ? "" : ".") + std::string(part);
    group = dot == std::string_view::npos ? std::string_view() : group.substr(0, dot);
  }
  return reversed;
}

// The schema of a definition in the words of OpenAPI. Depth is bounded by the definition's, which Build checks too.
class Model {
 public:
  Model(Arena& arena, OpenAPIVersion version) : arena_(arena), v2_(version == OpenAPIVersion::kV2) {}

  Value Text(std::string text) const { return Value::String(arena_, text); }

  Value Property(std::string_view type, std::string description) const {
    Value property = Value::Map(arena_);
    property.Set(arena_, "description", Text(std::move(description)));
    property.Set(arena_, "type", type);
    return property;
  }
  Value Reference(std::string_view name) const {
    Value reference = Value::Map(arena_);
    reference.Set(arena_, "$ref", Text((v2_ ? "#/definitions/" : "#/components/schemas/") + std::string(name)));
    return reference;
  }
  Value DescribedReference(std::string_view name, std::string description) const {
    Value described = v2_ ? Reference(name) : Value::Map(arena_);
    described.Set(arena_, "description", Text(std::move(description)));
    if (!v2_) described.EnsureList(arena_, "allOf").Append(arena_, Reference(name));
    return described;
  }
  void AddTypeMeta(Value properties, bool embedded) const {
    properties.Set(arena_, "apiVersion",
                   Property("string", (embedded ? "api" : "API") + std::string(kAPIVersionText) +
                                          std::string(kConventions) + "#resources"));
    properties.Set(arena_, "kind",
                   Property("string", (embedded ? "k" : "K") + std::string(kKindText) + std::string(kConventions) +
                                          "#types-kinds"));
  }
  void AddMetadata(Value properties) const {
    properties.Set(
        arena_, "metadata",
        DescribedReference(std::string(kMetaPackage) + "ObjectMeta",
                           "Standard object's metadata. More info: " + std::string(kConventions) + "#metadata"));
  }

  // Rewrites in place. False: too deep.
  bool Rewrite(Value schema, int depth) {
    if (depth > kDepthMax) return false;
    for (const std::string_view key : {"$schema", "id"}) schema.Erase(key);
    Unfold(schema);
    if (v2_) Simplify(schema);
    for (const Member& member : schema["properties"].members()) {
      if (!Rewrite(member.value, depth + 1)) return false;
    }
    for (const std::string_view key : {"items", "additionalProperties"}) {
      if (const Value child = schema[key]; child.is_map() && !Rewrite(child, depth + 1)) return false;
    }
    if (schema["x-kubernetes-embedded-resource"].as_bool() &&
        !(v2_ && schema["x-kubernetes-preserve-unknown-fields"].as_bool())) {
      Value properties = schema.EnsureMap(arena_, "properties");
      AddTypeMeta(properties, true);
      AddMetadata(properties);
      Value required = schema.EnsureList(arena_, "required");
      for (const std::string_view key : {"kind", "apiVersion"}) {
        const bool there =
            std::ranges::any_of(required.items(), [&](const Value& one) { return one.as_string() == key; });
        if (!there) required.Append(arena_, key);
      }
    }
    return true;
  }

 private:
  Value IntegerOrString() const {
    Value list = Value::List(arena_);
    for (const std::string_view type : {"integer", "string"}) {
      Value one = Value::Map(arena_);
      one.Set(arena_, "type", type);
      list.Append(arena_, one);
    }
    return list;
  }
  static bool IsIntegerOrString(const Value& any_of) {
    return any_of.size() == 2 && any_of[std::size_t{0}]["type"].as_string() == "integer" &&
           any_of[std::size_t{1}]["type"].as_string() == "string";
  }
  // int-or-string in the words of OpenAPI, unless the schema says it itself.
  void Unfold(Value schema) const {
    if (!schema["x-kubernetes-int-or-string"].as_bool()) return;
    const Value any_of = schema["anyOf"];
    if (IsIntegerOrString(any_of) || IsIntegerOrString(schema["allOf"][std::size_t{0}]["anyOf"])) return;
    if (any_of.is_null()) {
      schema.Set(arena_, "anyOf", IntegerOrString());
    } else {
      Value first = Value::Map(arena_);
      first.Set(arena_, "anyOf", IntegerOrString());
      schema.EnsureList(arena_, "allOf").Insert(arena_, 0, first);
    }
  }
  // OpenAPI v2 has no junctors and no nullable; kubectl cannot read open objects that declare something.
  void Simplify(Value schema) const {
    for (const std::string_view key : {"allOf", "anyOf", "oneOf", "not", "default"}) schema.Erase(key);
    DropNullableFromRequired(schema);
    if (schema["nullable"].as_bool()) {
      for (const std::string_view key : {"type", "items", "properties", "nullable"}) schema.Erase(key);
    }
    schema.Erase("nullable");
    if (schema["x-kubernetes-preserve-unknown-fields"].as_bool()) {
      for (const std::string_view key : {"items", "properties"}) schema.Erase(key);
      if (schema["type"].as_string() == "object") schema.Erase("type");
    }
    if (schema["type"].as_string() == "array" && !schema["items"].is_map()) schema.Erase("type");
  }
  void DropNullableFromRequired(Value schema) const {
    Value required = schema["required"];
    for (std::size_t i = 0; i < required.size();) {
      const Value property = schema["properties"][required[i].as_string()];
      if (property["nullable"].as_bool()) {
        required.Remove(i);
      } else {
        ++i;
      }
    }
    if (required.is_list() && required.empty()) schema.Erase("required");
  }

  Arena& arena_;
  const bool v2_;
};

Value GroupVersionKind(Arena& arena, const PublishedVersion& published, std::string_view kind) {
  Value gvk = Value::Map(arena);
  gvk.Set(arena, "group", published.group);
  gvk.Set(arena, "kind", kind);
  gvk.Set(arena, "version", published.version);
  Value list = Value::List(arena);
  list.Append(arena, gvk);
  return list;
}

Value ListModel(Arena& arena, const Model& model, const PublishedVersion& published) {
  const std::string conventions(kConventions);
  Value list = Value::Map(arena);
  list.Set(arena, "description",
           model.Text(std::string(published.list_kind) + " is a list of " + std::string(published.kind)));
  list.EnsureList(arena, "required").Append(arena, "items");
  list.Set(arena, "type", "object");
  Value properties = list.EnsureMap(arena, "properties");
  model.AddTypeMeta(properties, false);
  Value items = model.Property("array", "List of " + std::string(published.plural) + ". More info: " + conventions);
  items.Set(arena, "items", model.Reference(ModelName(published)));
  properties.Set(arena, "items", items);
  properties.Set(arena, "metadata",
                 model.DescribedReference(std::string(kMetaPackage) + "ListMeta",
                                          "Standard list metadata. More info: " + conventions + "#types-kinds"));
  list.Set(arena, "x-kubernetes-group-version-kind", GroupVersionKind(arena, published, published.list_kind));
  return list;
}

void AddSelectableFields(Arena& arena, Value schema, const PublishedVersion& published) {
  if (published.selectable_fields.empty()) return;
  Value fields = schema.EnsureList(arena, "x-kubernetes-selectable-fields");
  for (std::string_view path : published.selectable_fields) {
    if (path.starts_with('.')) path.remove_prefix(1);
    Value field = Value::Map(arena);
    field.Set(arena, "fieldPath", path);
    fields.Append(arena, field);
  }
}

void AppendMember(std::string& out, const std::string& name, const Value& value) {
  object::AppendJSONString(out, name);
  out += ':';
  object::AppendJSON(out, value);
}

}  // namespace

std::string ModelName(const PublishedVersion& published) {
  return Reversed(published.group) + "." + std::string(published.version) + "." + std::string(published.kind);
}

std::string ListModelName(const PublishedVersion& published) {
  return Reversed(published.group) + "." + std::string(published.version) + "." + std::string(published.list_kind);
}

bool AppendModels(std::string& out, const PublishedVersion& published, OpenAPIVersion version) {
  Arena arena;
  Model model(arena, version);
  Value schema;
  if (!published.schema.empty()) {
    const auto parsed = object::ParseJSON(arena, published.schema);
    if (!parsed || !parsed->is_map()) return false;
    schema = *parsed;
  }
  const bool v2 = version == OpenAPIVersion::kV2;
  const bool open = schema["x-kubernetes-preserve-unknown-fields"].as_bool() || published.preserve_unknown_fields;
  if (schema.is_null() || (v2 && open)) {
    schema = Value::Map(arena);
    schema.Set(arena, "type", "object");
  } else {
    if (!model.Rewrite(schema, 0)) return false;
    Value properties = schema.EnsureMap(arena, "properties");
    model.AddTypeMeta(properties, false);
    model.AddMetadata(properties);
  }
  schema.Set(arena, "x-kubernetes-group-version-kind", GroupVersionKind(arena, published, published.kind));
  AddSelectableFields(arena, schema, published);
  AppendMember(out, ModelName(published), schema);
  out += ',';
  const Value list = ListModel(arena, model, published);
  AddSelectableFields(arena, list, published);
  AppendMember(out, ListModelName(published), list);
  return true;
}

}  // namespace keelson::schema::structural
