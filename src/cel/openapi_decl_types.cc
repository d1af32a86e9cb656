#include "cel/openapi_decl_types.h"

#include <algorithm>
#include <vector>

namespace keelson::cel {
namespace {

constexpr std::string_view kReferencePrefix = "#/components/schemas/";

// The name that a schema refers to, also when the reference is wrapped in allOf to keep a description; "" for none.
std::string_view ReferenceOf(object::Value schema) {
  const std::string_view reference = schema["$ref"].as_string();
  if (reference.starts_with(kReferencePrefix)) return reference.substr(kReferencePrefix.size());
  for (const object::Value part : schema["allOf"].items()) {
    if (const std::string_view inner = ReferenceOf(part); !inner.empty()) return inner;
  }
  return {};
}

std::string_view TypeOf(object::Value schema) { return schema["type"].as_string(); }

// `metadata` is the property, without a reference.
bool DeclaresObjectMeta(object::Value properties, object::Value metadata) {
  return TypeOf(properties["kind"]) == "string" && TypeOf(properties["apiVersion"]) == "string" &&
         TypeOf(metadata) == "object" && TypeOf(metadata["properties"]["name"]) == "string" &&
         TypeOf(metadata["properties"]["generateName"]) == "string";
}

bool IsIntOrString(object::Value schema) {
  return schema["format"].as_string() == "int-or-string" || schema["x-kubernetes-int-or-string"].as_bool();
}

}  // namespace

const DeclType* OpenAPIDeclTypes::Scalar(std::string_view name, const Type& type) {
  return arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kScalar, .type = &type, .name = name});
}

const DeclType* OpenAPIDeclTypes::Convert(object::Value schema, bool resource_root) {
  if (const std::string_view reference = ReferenceOf(schema); !reference.empty()) {
    if (!inside_.insert(reference).second)
      return arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kObject, .name = "object"});
    const DeclType* const referred = Convert(schemas_[reference], resource_root);
    inside_.erase(reference);
    return referred;
  }
  if (IsIntOrString(schema)) return Scalar("dyn", kDynType);
  const std::string_view type = TypeOf(schema), format = schema["format"].as_string();
  if (type == "object" || resource_root) return ConvertObject(schema, resource_root);
  if (type == "array") {
    const object::Value items = schema["items"];
    const DeclType* const element =
        items.is_map() ? Convert(items, items["x-kubernetes-embedded-resource"].as_bool()) : nullptr;
    if (element == nullptr) return nullptr;
    return arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kList, .name = "list", .element = element});
  }
  if (type == "string") {
    if (format == "byte") return Scalar("bytes", kBytesType);
    if (format == "duration") return Scalar("duration", kDurationType);
    if (format == "date" || format == "date-time") return Scalar("timestamp", kTimestampType);
    return Scalar("string", kStringType);
  }
  if (type == "boolean") return Scalar("bool", kBoolType);
  if (type == "number") return Scalar("double", kDoubleType);
  if (type == "integer") return Scalar("int", kIntType);
  return nullptr;  // not seen by expressions: quantities, JSON of any shape
}

const DeclType* OpenAPIDeclTypes::ConvertObject(object::Value schema, bool resource_root) {
  if (const object::Value values = schema["additionalProperties"]; values.is_map()) {
    const DeclType* const element = Convert(values, values["x-kubernetes-embedded-resource"].as_bool());
    if (element == nullptr) return nullptr;
    return arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kMap, .name = "map", .element = element});
  }
  const object::Value properties = schema["properties"];
  std::vector<DeclField> fields;
  const auto add = [&](std::string_view name, const DeclType* type) {
    if (type == nullptr) return;
    if (auto escaped = EscapeName(name)) fields.push_back({arena_.Copy(*escaped), type});
  };
  object::Value metadata = properties["metadata"];
  if (const std::string_view reference = ReferenceOf(metadata); !reference.empty()) metadata = schemas_[reference];
  const bool add_meta = resource_root && !DeclaresObjectMeta(properties, metadata);
  for (const auto& [name, property] : properties.members()) {
    if (add_meta && (name == "kind" || name == "apiVersion" || name == "metadata")) continue;
    add(name, Convert(property, property["x-kubernetes-embedded-resource"].as_bool()));
  }
  if (add_meta) {
    add("apiVersion", Scalar("string", kStringType));
    add("kind", Scalar("string", kStringType));
    auto* const meta = arena_.NewArray<DeclField>(2);
    meta[0] = {"generateName", Scalar("string", kStringType)};
    meta[1] = {"name", Scalar("string", kStringType)};
    add("metadata",
        arena_.New<DeclType>(DeclType{.kind = DeclType::Kind::kObject, .name = "object", .fields = {meta, 2}}));
  }
  std::ranges::sort(fields, {}, &DeclField::name);
  auto* copy = arena_.NewArray<DeclField>(fields.size());
  std::ranges::copy(fields, copy);
  return arena_.New<DeclType>(
      DeclType{.kind = DeclType::Kind::kObject, .name = "object", .fields = {copy, fields.size()}});
}

}  // namespace keelson::cel
