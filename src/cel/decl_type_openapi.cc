#include <algorithm>
#include <set>
#include <string>

#include "cel/decl_type.h"

namespace keelson::cel {
namespace {

using object::Value;

// Sizes do not matter where nothing is estimated; types do.
constexpr std::int64_t kAnySize = 1;
constexpr std::string_view kReferencePrefix = "#/components/schemas/";

// The name that a schema refers to, also when the reference is wrapped in allOf to keep a description; "" for none.
std::string_view ReferenceOf(Value schema) {
  const std::string_view reference = schema["$ref"].as_string();
  if (reference.starts_with(kReferencePrefix)) return reference.substr(kReferencePrefix.size());
  for (const Value part : schema["allOf"].items()) {
    if (const std::string_view inner = ReferenceOf(part); !inner.empty()) return inner;
  }
  return {};
}

std::string_view TypeOf(Value schema) { return schema["type"].as_string(); }

// `metadata` is the property, without a reference.
bool DeclaresObjectMeta(Value properties, Value metadata) {
  return TypeOf(properties["kind"]) == "string" && TypeOf(properties["apiVersion"]) == "string" &&
         TypeOf(metadata) == "object" && TypeOf(metadata["properties"]["name"]) == "string" &&
         TypeOf(metadata["properties"]["generateName"]) == "string";
}

bool IsIntOrString(Value schema) {
  return schema["format"].as_string() == "int-or-string" || schema["x-kubernetes-int-or-string"].as_bool();
}

}  // namespace

struct DeclTypes::OpenAPIWalk {
  Value schemas;
  std::set<std::string_view> inside;  // references on the way to here

  // The schema that a reference stands for; null for one that is not there.
  Value Find(std::string_view reference) const { return schemas[reference]; }
};

const DeclType* DeclTypes::ConvertOpenAPI(Value schemas, Value schema) {
  OpenAPIWalk walk{.schemas = schemas};
  return FromOpenAPI(walk, schema, true);
}

const DeclType* DeclTypes::FromOpenAPI(OpenAPIWalk& walk, Value schema, bool resource_root) {
  if (const std::string_view reference = ReferenceOf(schema); !reference.empty()) {
    if (!walk.inside.insert(reference).second)
      return arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kObject, .name = "object"});
    const DeclType* const referred = FromOpenAPI(walk, walk.Find(reference), resource_root);
    walk.inside.erase(reference);
    return referred;
  }
  if (IsIntOrString(schema)) return Scalar("dyn", kDynType, kAnySize);
  const std::string_view type = TypeOf(schema), format = schema["format"].as_string();
  if (type == "object" || resource_root) return OpenAPIObject(walk, schema, resource_root);
  if (type == "array") {
    const Value items = schema["items"];
    const DeclType* const element =
        items.is_map() ? FromOpenAPI(walk, items, items["x-kubernetes-embedded-resource"].as_bool()) : nullptr;
    if (element == nullptr) return nullptr;
    return arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kList, .name = "list", .element = element});
  }
  if (type == "string") {
    if (format == "byte") return Scalar("bytes", kBytesType, kAnySize);
    if (format == "duration") return Scalar("duration", kDurationType, kAnySize);
    if (format == "date" || format == "date-time") return Scalar("timestamp", kTimestampType, kAnySize);
    return Scalar("string", kStringType, kAnySize);
  }
  if (type == "boolean") return Scalar("bool", kBoolType, kAnySize);
  if (type == "number") return Scalar("double", kDoubleType, kAnySize);
  if (type == "integer") return Scalar("int", kIntType, kAnySize);
  return nullptr;  // not seen by expressions: quantities, JSON of any shape
}

const DeclType* DeclTypes::OpenAPIObject(OpenAPIWalk& walk, Value schema, bool resource_root) {
  if (const Value values = schema["additionalProperties"]; values.is_map()) {
    const DeclType* const element = FromOpenAPI(walk, values, values["x-kubernetes-embedded-resource"].as_bool());
    if (element == nullptr) return nullptr;
    return arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kMap, .name = "map", .element = element});
  }
  const Value properties = schema["properties"];
  std::vector<DeclField> fields;
  const auto add = [&](std::string_view name, const DeclType* type) {
    if (type == nullptr) return;
    if (auto escaped = EscapeName(name)) fields.push_back({arena_.Copy(*escaped), type});
  };
  Value metadata = properties["metadata"];
  if (const std::string_view reference = ReferenceOf(metadata); !reference.empty()) metadata = walk.Find(reference);
  const bool add_meta = resource_root && !DeclaresObjectMeta(properties, metadata);
  for (const auto& [name, property] : properties.members()) {
    if (add_meta && (name == "kind" || name == "apiVersion" || name == "metadata")) continue;
    add(name, FromOpenAPI(walk, property, property["x-kubernetes-embedded-resource"].as_bool()));
  }
  if (add_meta) {
    add("apiVersion", Scalar("string", kStringType, kAnySize));
    add("kind", Scalar("string", kStringType, kAnySize));
    add("metadata", ObjectMeta());
  }
  std::ranges::sort(fields, {}, &DeclField::name);
  auto* copy = arena_.NewArray<DeclField>(fields.size());
  std::ranges::copy(fields, copy);
  return arena_.New<DeclType>(
      DeclType{.kind = DeclType::Kind::kObject, .name = "object", .fields = {copy, fields.size()}});
}

}  // namespace keelson::cel
