#include "apidocs/openapi_protobuf.h"

#include "apidocs/openapi_message.h"
#include "base/arena.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::apidocs {
namespace {

// Numbers are those of gnostic's OpenAPIv2.proto.
Message Schema(const Value& schema) {
  Message out;
  out.Text(1, schema["$ref"].as_string());
  out.Text(2, schema["format"].as_string());
  out.Text(4, schema["description"].as_string());
  if (schema.Has("default")) out.Sub(5, Any(schema["default"]));
  out.Texts(19, schema["required"]);
  for (const Value& value : schema["enum"].items()) out.Sub(20, Any(value));
  if (schema["additionalProperties"].is_map()) {
    Message item;
    item.Sub(1, Schema(schema["additionalProperties"]));
    out.Sub(21, item);
  }
  if (schema["type"].is_string()) {
    Message type;
    type.Text(1, schema["type"].as_string());
    out.Sub(22, type);
  }
  if (schema["items"].is_map()) {
    Message items;
    items.Sub(1, Schema(schema["items"]));
    out.Sub(23, items);
  }
  if (schema["properties"].is_map()) {
    Message properties;
    for (const object::Member& member : schema["properties"].members()) {
      properties.Sub(1, Named(member.key, Schema(member.value)));
    }
    out.Sub(25, properties);
  }
  Extensions(out, 31, schema);
  return out;
}

Message Parameter(const Value& parameter) {
  const std::string_view in = parameter["in"].as_string();
  Message out;
  if (in == "body") {
    Message body;
    body.Text(1, parameter["description"].as_string());
    body.Text(2, parameter["name"].as_string());
    body.Text(3, in);
    body.Bool(4, parameter["required"].as_bool());
    body.Sub(5, Schema(parameter["schema"]));
    out.Sub(1, body);
    return out;
  }
  const bool path = in == "path";
  Message inner;
  inner.Bool(1, parameter["required"].as_bool());
  inner.Text(2, in);
  inner.Text(3, parameter["description"].as_string());
  inner.Text(4, parameter["name"].as_string());
  inner.Text(path ? 5 : 6, parameter["type"].as_string());
  inner.Bool(path ? 19 : 20, parameter["uniqueItems"].as_bool());
  Message other;
  other.Sub(path ? 4 : 3, inner);
  out.Sub(2, other);
  return out;
}

void Parameters(Message& out, int field, const Value& list) {
  for (const Value& parameter : list.items()) {
    Message item;
    if (parameter.Has("$ref")) {
      Message reference;
      reference.Text(1, parameter["$ref"].as_string());
      item.Sub(2, reference);
    } else {
      item.Sub(1, Parameter(parameter));
    }
    out.Sub(field, item);
  }
}

Message Operation(const Value& operation) {
  Message out;
  out.Texts(1, operation["tags"]);
  out.Text(3, operation["description"].as_string());
  out.Text(5, operation["operationId"].as_string());
  out.Texts(6, operation["produces"]);
  out.Texts(7, operation["consumes"]);
  Parameters(out, 8, operation["parameters"]);
  Message responses;
  for (const object::Member& member : operation["responses"].members()) {
    Message response;
    response.Text(1, member.value["description"].as_string());
    if (member.value.Has("schema")) {
      Message schema;
      schema.Sub(1, Schema(member.value["schema"]));
      response.Sub(2, schema);
    }
    Message value;
    value.Sub(1, response);
    responses.Sub(1, Named(member.key, value));
  }
  out.Sub(9, responses);
  out.Texts(10, operation["schemes"]);
  Extensions(out, 13, operation);
  return out;
}

Message PathItem(const Value& item) {
  static constexpr std::pair<std::string_view, int> kMethods[] = {
      {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"options", 6}, {"head", 7}, {"patch", 8}};
  Message out;
  for (const auto& [method, field] : kMethods) {
    if (item.Has(method)) out.Sub(field, Operation(item[method]));
  }
  Parameters(out, 9, item["parameters"]);
  return out;
}

}  // namespace

std::string OpenAPIv2Protobuf(std::string_view json) {
  base::Arena arena;
  const auto document = object::ParseJSON(arena, json);
  if (!document) return {};
  const Value& root = *document;
  Message out;
  out.Text(1, root["swagger"].as_string());
  Message info;
  info.Text(1, root.Get("info", "title").as_string());
  info.Text(2, root.Get("info", "version").as_string());
  out.Sub(2, info);
  Message paths;
  for (const object::Member& member : root["paths"].members()) paths.Sub(2, Named(member.key, PathItem(member.value)));
  out.Sub(8, paths);
  Message definitions;
  for (const object::Member& member : root["definitions"].members()) {
    definitions.Sub(1, Named(member.key, Schema(member.value)));
  }
  out.Sub(9, definitions);
  Message parameters;
  for (const object::Member& member : root["parameters"].members()) {
    parameters.Sub(1, Named(member.key, Parameter(member.value)));
  }
  out.Sub(10, parameters);
  for (const Value& requirement : root["security"].items()) {
    Message security;
    for (const object::Member& member : requirement.members()) {
      Message scopes;
      scopes.Texts(1, member.value);
      security.Sub(1, Named(member.key, scopes));
    }
    out.Sub(12, security);
  }
  Message schemes;
  for (const object::Member& member : root["securityDefinitions"].members()) {
    Message key;
    key.Text(1, member.value["type"].as_string());
    key.Text(2, member.value["name"].as_string());
    key.Text(3, member.value["in"].as_string());
    key.Text(4, member.value["description"].as_string());
    Message item;
    item.Sub(2, key);
    schemes.Sub(1, Named(member.key, item));
  }
  out.Sub(13, schemes);
  return out.bytes();
}

}  // namespace keelson::apidocs
