// Numbers are those of gnostic's OpenAPIv3.proto; only what our documents contain is written.
#include "apidocs/openapi_message.h"
#include "apidocs/openapi_protobuf.h"
#include "base/arena.h"
#include "object/json_text.h"

namespace keelson::apidocs {
namespace {

Message Schema(const Value& schema);

Message Reference(const Value& value) {
  Message reference;
  reference.Text(1, value["$ref"].as_string());
  reference.Text(3, value["description"].as_string());
  return reference;
}

// XOrReference: the thing itself in field 1, a reference in field 2.
Message SchemaOrReference(const Value& value) {
  return value.Has("$ref") ? Wrapped(2, Reference(value)) : Wrapped(1, Schema(value));
}

void Schemas(Message& out, int field, const Value& list) {
  for (const Value& item : list.items()) out.Sub(field, SchemaOrReference(item));
}

// A number, a boolean or a text; what is none of them (the {} of structs) is there and empty.
Message Default(const Value& value) {
  Message out;
  if (value.is_number()) out.Double(1, value.as_double());
  if (value.is_bool()) out.One(2, value.as_bool() ? 1 : 0);
  if (value.is_string()) out.Bytes(3, value.as_string());
  return out;
}

Message Schema(const Value& schema) {
  Message out;
  out.Bool(1, schema["nullable"].as_bool());
  if (schema["maximum"].is_number()) out.Double(11, schema["maximum"].as_double());
  if (schema["minimum"].is_number()) out.Double(13, schema["minimum"].as_double());
  if (schema["maxLength"].is_int()) out.One(15, static_cast<std::uint64_t>(schema["maxLength"].as_int()));
  if (schema["minLength"].is_int()) out.One(16, static_cast<std::uint64_t>(schema["minLength"].as_int()));
  out.Text(17, schema["pattern"].as_string());
  if (schema["maxItems"].is_int()) out.One(18, static_cast<std::uint64_t>(schema["maxItems"].as_int()));
  if (schema["minItems"].is_int()) out.One(19, static_cast<std::uint64_t>(schema["minItems"].as_int()));
  out.Bool(20, schema["uniqueItems"].as_bool());
  out.Texts(23, schema["required"]);
  for (const Value& value : schema["enum"].items()) out.Sub(24, Any(value));
  out.Text(25, schema["type"].as_string());
  Schemas(out, 26, schema["allOf"]);
  Schemas(out, 27, schema["oneOf"]);
  Schemas(out, 28, schema["anyOf"]);
  if (schema["not"].is_map()) out.Sub(29, Schema(schema["not"]));
  if (schema["items"].is_map()) out.Sub(30, Wrapped(1, SchemaOrReference(schema["items"])));
  if (schema["properties"].is_map()) {
    Message properties;
    for (const object::Member& member : schema["properties"].members()) {
      properties.Sub(1, Named(member.key, SchemaOrReference(member.value)));
    }
    out.Sub(31, properties);
  }
  if (const Value more = schema["additionalProperties"]; more.is_map()) {
    out.Sub(32, Wrapped(1, SchemaOrReference(more)));
  } else if (more.is_bool()) {
    Message item;
    item.One(2, more.as_bool() ? 1 : 0);
    out.Sub(32, item);
  }
  if (schema.Has("default")) out.Sub(33, Default(schema["default"]));
  out.Text(34, schema["description"].as_string());
  out.Text(35, schema["format"].as_string());
  Extensions(out, 36, schema);
  return out;
}

Message Content(const Value& content) {
  Message out;
  for (const object::Member& member : content.members()) {
    Message media;
    if (member.value.Has("schema")) media.Sub(1, SchemaOrReference(member.value["schema"]));
    out.Sub(1, Named(member.key, media));
  }
  return out;
}

void Parameters(Message& out, int field, const Value& list) {
  for (const Value& parameter : list.items()) {
    if (parameter.Has("$ref")) {
      out.Sub(field, Wrapped(2, Reference(parameter)));
      continue;
    }
    Message inner;
    inner.Text(1, parameter["name"].as_string());
    inner.Text(2, parameter["in"].as_string());
    inner.Text(3, parameter["description"].as_string());
    inner.Bool(4, parameter["required"].as_bool());
    if (parameter.Has("schema")) inner.Sub(10, SchemaOrReference(parameter["schema"]));
    out.Sub(field, Wrapped(1, inner));
  }
}

Message Responses(const Value& responses) {
  Message out;
  for (const object::Member& member : responses.members()) {
    Message response;
    response.Text(1, member.value["description"].as_string());
    if (member.value.Has("content")) response.Sub(3, Content(member.value["content"]));
    if (member.key == "default") {
      out.Sub(1, Wrapped(1, response));
    } else {
      out.Sub(2, Named(member.key, Wrapped(1, response)));
    }
  }
  return out;
}

Message Operation(const Value& operation) {
  Message out;
  out.Texts(1, operation["tags"]);
  out.Text(3, operation["description"].as_string());
  out.Text(5, operation["operationId"].as_string());
  Parameters(out, 6, operation["parameters"]);
  if (const Value body = operation["requestBody"]; body.is_map()) {
    Message request;
    request.Text(1, body["description"].as_string());
    if (body.Has("content")) request.Sub(2, Content(body["content"]));
    request.Bool(3, body["required"].as_bool());
    out.Sub(7, Wrapped(1, request));
  }
  out.Sub(8, Responses(operation["responses"]));
  out.Bool(10, operation["deprecated"].as_bool());
  Extensions(out, 13, operation);
  return out;
}

Message PathItem(const Value& item) {
  static constexpr std::pair<std::string_view, int> kMethods[] = {
      {"get", 4}, {"put", 5}, {"post", 6}, {"delete", 7}, {"options", 8}, {"head", 9}, {"patch", 10}};
  Message out;
  for (const auto& [method, field] : kMethods) {
    if (item.Has(method)) out.Sub(field, Operation(item[method]));
  }
  Parameters(out, 13, item["parameters"]);
  return out;
}

Message Components(const Value& components) {
  Message out;
  if (components["schemas"].is_map()) {
    Message schemas;
    for (const object::Member& member : components["schemas"].members()) {
      schemas.Sub(1, Named(member.key, SchemaOrReference(member.value)));
    }
    out.Sub(1, schemas);
  }
  if (components["securitySchemes"].is_map()) {
    Message schemes;
    for (const object::Member& member : components["securitySchemes"].members()) {
      Message scheme;
      scheme.Text(1, member.value["type"].as_string());
      scheme.Text(2, member.value["description"].as_string());
      scheme.Text(3, member.value["name"].as_string());
      scheme.Text(4, member.value["in"].as_string());
      schemes.Sub(1, Named(member.key, Wrapped(1, scheme)));
    }
    out.Sub(7, schemes);
  }
  return out;
}

}  // namespace

std::string OpenAPIv3Protobuf(std::string_view json) {
  base::Arena arena;
  const auto document = object::ParseJSON(arena, json);
  if (!document) return {};
  const Value& root = *document;
  Message out;
  out.Text(1, root["openapi"].as_string());
  Message info;
  info.Text(1, root.Get("info", "title").as_string());
  info.Text(2, root.Get("info", "description").as_string());
  info.Text(6, root.Get("info", "version").as_string());
  out.Sub(2, info);
  Message paths;
  for (const object::Member& member : root["paths"].members()) paths.Sub(1, Named(member.key, PathItem(member.value)));
  out.Sub(4, paths);
  if (root["components"].is_map()) out.Sub(5, Components(root["components"]));
  return out.bytes();
}

}  // namespace keelson::apidocs
