#include "aggregator/openapi_convert.h"

#include <array>
#include <vector>

namespace keelson::aggregator {
namespace {

constexpr std::string_view kDefinitions = "#/definitions/";
constexpr int kDepthMax = 200;

Value Rewrite(base::Arena& arena, const Value& value, std::string_view from_prefix,
              const std::function<std::string(std::string_view)>& rename, int depth) {
  if (depth > kDepthMax) return Value();
  if (value.is_list()) {
    Value out = Value::List(arena, value.size());
    for (const Value& item : value.items()) out.Append(arena, Rewrite(arena, item, from_prefix, rename, depth + 1));
    return out;
  }
  if (!value.is_map()) return value;
  Value out = Value::Map(arena, value.size());
  for (const auto& member : value.members()) {
    if (member.key == "$ref" && member.value.is_string() && member.value.as_string().starts_with(from_prefix)) {
      const std::string text = rename(member.value.as_string().substr(from_prefix.size()));
      out.Set(arena, member.key, text.empty() ? member.value : Value::String(arena, text));
    } else {
      out.Set(arena, member.key, Rewrite(arena, member.value, from_prefix, rename, depth + 1));
    }
  }
  return out;
}

std::vector<std::string_view> Types(const Value& own, const Value& inherited) {
  std::vector<std::string_view> out;
  for (const Value& type : (own.empty() ? inherited : own).items()) out.push_back(type.as_string());
  if (out.empty()) out.push_back("application/json");
  return out;
}

Value Content(base::Arena& arena, const Value& schema, const std::vector<std::string_view>& types) {
  Value content = Value::Map(arena, types.size());
  for (const std::string_view type : types) {
    Value media = Value::Map(arena, 1);
    media.Set(arena, "schema", schema);
    content.Set(arena, type, media);
  }
  return content;
}

Value ConvertResponses(base::Arena& arena, const Value& responses, const std::vector<std::string_view>& produces) {
  Value out = Value::Map(arena, responses.size());
  for (const auto& member : responses.members()) {
    Value response = Value::Map(arena, 2);
    for (const auto& part : member.value.members()) {
      if (part.key == "schema") {
        response.Set(arena, "content", Content(arena, part.value, produces));
      } else if (part.key != "examples") {
        response.Set(arena, part.key, part.value);
      }
    }
    out.Set(arena, member.key, response);
  }
  return out;
}

Value ConvertParameter(base::Arena& arena, const Value& parameter) {
  constexpr std::array<std::string_view, 5> kKept = {"name", "in", "description", "required", "$ref"};
  constexpr std::array<std::string_view, 14> kSchema = {"type",     "format",    "items",       "default",   "maximum",
                                                        "minimum",  "maxLength", "minLength",   "pattern",   "maxItems",
                                                        "minItems", "enum",      "uniqueItems", "multipleOf"};
  Value out = Value::Map(arena, 5);
  for (const std::string_view key : kKept) {
    if (const Value* found = parameter.Find(key)) out.Set(arena, key, *found);
  }
  Value schema = Value::Map(arena, 3);
  for (const std::string_view key : kSchema) {
    if (const Value* found = parameter.Find(key)) schema.Set(arena, key, *found);
  }
  if (!schema.empty()) out.Set(arena, "schema", schema);
  return out;
}

Value ConvertOperation(base::Arena& arena, const Value& operation, const Value& root) {
  Value out = Value::Map(arena, operation.size());
  const auto consumes = Types(operation["consumes"], root["consumes"]);
  const auto produces = Types(operation["produces"], root["produces"]);
  for (const auto& member : operation.members()) {
    if (member.key == "consumes" || member.key == "produces" || member.key == "schemes") continue;
    if (member.key == "responses") {
      out.Set(arena, "responses", ConvertResponses(arena, member.value, produces));
      continue;
    }
    if (member.key != "parameters") {
      out.Set(arena, member.key, member.value);
      continue;
    }
    Value parameters = Value::List(arena, member.value.size());
    for (const Value& parameter : member.value.items()) {
      if (parameter["in"].as_string() == "body") {
        Value body = Value::Map(arena, 3);
        if (const Value* text = parameter.Find("description")) body.Set(arena, "description", *text);
        body.Set(arena, "content", Content(arena, parameter["schema"], consumes));
        if (parameter["required"].as_bool()) body.Set(arena, "required", true);
        out.Set(arena, "requestBody", body);
      } else {
        parameters.Append(arena, ConvertParameter(arena, parameter));
      }
    }
    if (!parameters.empty()) out.Set(arena, "parameters", parameters);
  }
  return out;
}

Value ConvertPath(base::Arena& arena, const Value& path, const Value& root) {
  Value out = Value::Map(arena, path.size());
  for (const auto& member : path.members()) {
    if (member.key == "parameters") {
      Value parameters = Value::List(arena, member.value.size());
      for (const Value& parameter : member.value.items()) parameters.Append(arena, ConvertParameter(arena, parameter));
      out.Set(arena, member.key, parameters);
    } else if (member.value.is_map()) {
      out.Set(arena, member.key, ConvertOperation(arena, member.value, root));
    } else {
      out.Set(arena, member.key, member.value);
    }
  }
  return out;
}

}  // namespace

Value RewriteReferences(base::Arena& arena, const Value& value, std::string_view from_prefix,
                        const std::function<std::string(std::string_view)>& rename) {
  return Rewrite(arena, value, from_prefix, rename, 0);
}

Value ConvertV2ToV3(base::Arena& arena, const Value& document) {
  Value out = Value::Map(arena, 5);
  out.Set(arena, "openapi", "3.0.0");
  if (const Value* info = document.Find("info")) out.Set(arena, "info", *info);
  Value paths = Value::Map(arena, document["paths"].size());
  for (const auto& member : document["paths"].members())
    paths.Set(arena, member.key, ConvertPath(arena, member.value, document));
  out.Set(arena, "paths", paths);
  Value components = Value::Map(arena, 2);
  components.Set(arena, "schemas", document["definitions"].is_map() ? document["definitions"] : Value::Map(arena));
  if (const Value* security = document.Find("securityDefinitions")) components.Set(arena, "securitySchemes", *security);
  out.Set(arena, "components", components);
  if (const Value* docs = document.Find("externalDocs")) out.Set(arena, "externalDocs", *docs);
  return RewriteReferences(arena, out, kDefinitions,
                           [](std::string_view reference) { return "#/components/schemas/" + std::string(reference); });
}

}  // namespace keelson::aggregator
