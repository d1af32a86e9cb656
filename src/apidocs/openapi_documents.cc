#include "apidocs/openapi_documents.h"

#include <algorithm>

#include "apidocs/openapi_model.h"
#include "apidocs/openapi_schemas.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::apidocs {
namespace {

using base::Arena;

std::string_view ResponseDescription(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    default:
      return "Unauthorized";
  }
}

class Writer {
 public:
  Writer(Arena& arena, OpenAPIFormat format, std::span<const DiscoveryGroup> groups, const schema::Package* only)
      : arena_(arena),
        v3_(format == OpenAPIFormat::kV3),
        definitions_(arena, format, groups, only),
        paths_(Value::Map(arena)),
        shared_(Value::Map(arena)) {}

  void AddPaths(OpenAPIPaths paths) {
    for (auto& [path, operations] : paths) paths_.Set(arena_, arena_.Copy(path), PathItem(operations));
  }

  // `"<path>":{...}` of all paths, and of all definitions that they need.
  std::string PathMembers() const { return Members(paths_); }
  std::string DefinitionMembers() { return Members(definitions_.Definitions()); }
  void Need(const std::string& name) { definitions_.Need(name); }
  // The definition belongs to another source.
  void Leave(const std::string& name) { definitions_.Leave(name); }

  std::string V3() {
    Value schemes = Map();
    schemes.Set(arena_, "BearerToken", BearerToken());
    Value components = Map();
    if (Value schemas = definitions_.Definitions(); !schemas.empty()) components.Set(arena_, "schemas", schemas);
    components.Set(arena_, "securitySchemes", schemes);
    Value document = Map();
    document.Set(arena_, "components", components);
    document.Set(arena_, "info", Info());
    document.Set(arena_, "openapi", "3.0.0");
    document.Set(arena_, "paths", paths_);
    return object::ToJSON(document);
  }

  std::string V2() {
    Value schemes = Map();
    schemes.Set(arena_, "BearerToken", BearerToken());
    Value required = Map();
    required.Set(arena_, "BearerToken", Value::List(arena_));
    Value security = Value::List(arena_);
    security.Append(arena_, required);
    Value document = Map();
    document.Set(arena_, "swagger", "2.0");
    document.Set(arena_, "info", Info());
    document.Set(arena_, "paths", paths_);
    document.Set(arena_, "definitions", definitions_.Definitions());
    shared_.SortMembers();
    document.Set(arena_, "parameters", shared_);
    document.Set(arena_, "securityDefinitions", schemes);
    document.Set(arena_, "security", security);
    return object::ToJSON(document);
  }

 private:
  static std::string Members(const Value& map) {
    const std::string json = object::ToJSON(map);
    return json.substr(1, json.size() - 2);
  }
  Value Map() { return Value::Map(arena_); }
  Value Text(std::string_view text) { return Value::String(arena_, text); }

  Value Info() {
    Value info = Map();
    info.Set(arena_, "title", "Kubernetes");
    info.Set(arena_, "version", kOpenAPIVersion);
    return info;
  }

  Value BearerToken() {
    Value token = Map();
    token.Set(arena_, "description", "Bearer Token authentication");
    token.Set(arena_, "type", "apiKey");
    token.Set(arena_, "name", "authorization");
    token.Set(arena_, "in", "header");
    return token;
  }

  Value PathItem(std::vector<OpenAPIOperation>& operations) {
    const std::vector<OpenAPIParameter> common = TakeCommonParameters(operations);
    Value item = Map();
    for (const OpenAPIOperation& operation : operations)
      item.Set(arena_, Text(operation.method).as_string(), Operation(operation));
    if (!common.empty()) item.Set(arena_, "parameters", Parameters(common, nullptr));
    return item;
  }

  Value Operation(const OpenAPIOperation& operation) {
    Value out = Map();
    if (!operation.description.empty()) out.Set(arena_, "description", Text(operation.description));
    if (!v3_) {
      if (!operation.consumes.empty()) out.Set(arena_, "consumes", Texts(operation.consumes));
      out.Set(arena_, "produces", Texts(operation.produces));
      Value schemes = Value::List(arena_);
      schemes.Append(arena_, "https");
      out.Set(arena_, "schemes", schemes);
    }
    Value tags = Value::List(arena_);
    tags.Append(arena_, Text(operation.tag));
    out.Set(arena_, "tags", tags);
    out.Set(arena_, "operationId", Text(operation.id));
    const bool body_here = !v3_ && operation.body;
    if (!operation.parameters.empty() || body_here)
      out.Set(arena_, "parameters", Parameters(operation.parameters, body_here ? &operation : nullptr));
    if (v3_ && operation.body) out.Set(arena_, "requestBody", RequestBody(operation));
    Value responses = Map();
    for (const auto& [code, schema] : operation.responses)
      responses.Set(arena_, Text(std::to_string(code)).as_string(), Response(code, &schema, operation));
    responses.Set(arena_, "401", Response(401, nullptr, operation));
    out.Set(arena_, "responses", responses);
    if (!operation.action.empty()) {
      out.Set(arena_, "x-kubernetes-action", Text(operation.action));
      Value kind = Map();
      kind.Set(arena_, "group", operation.group);
      kind.Set(arena_, "kind", operation.kind);
      kind.Set(arena_, "version", operation.version);
      out.Set(arena_, "x-kubernetes-group-version-kind", kind);
    }
    return out;
  }

  Value Texts(const std::vector<std::string_view>& texts) {
    Value list = Value::List(arena_);
    for (const std::string_view text : texts) list.Append(arena_, text);
    return list;
  }

  // A definition, or a bare string.
  Value Schema(const OpenAPISchema& schema) {
    if (!schema.empty()) return definitions_.Reference(schema);
    Value text = Map();
    text.Set(arena_, "type", "string");
    return text;
  }

  Value Content(const std::vector<std::string_view>& media_types, const OpenAPISchema& schema) {
    std::vector<std::string_view> sorted = media_types;
    std::ranges::sort(sorted);
    Value content = Map();
    for (const std::string_view media_type : sorted) {
      Value entry = Map();
      entry.Set(arena_, "schema", Schema(schema));
      content.Set(arena_, media_type, entry);
    }
    return content;
  }

  Value RequestBody(const OpenAPIOperation& operation) {
    Value body = Map();
    body.Set(arena_, "content", Content(operation.consumes, *operation.body));
    if (operation.body_required) body.Set(arena_, "required", true);
    return body;
  }

  Value Response(int code, const OpenAPISchema* schema, const OpenAPIOperation& operation) {
    Value response = Map();
    response.Set(arena_, "description", ResponseDescription(code));
    if (schema == nullptr) return response;
    if (v3_) {
      response.Set(arena_, "content", Content(operation.produces, *schema));
    } else {
      response.Set(arena_, "schema", Schema(*schema));
    }
    return response;
  }

  Value Parameters(const std::vector<OpenAPIParameter>& parameters, const OpenAPIOperation* with_body) {
    Value list = Value::List(arena_);
    if (with_body != nullptr) {
      Value body = Map();
      body.Set(arena_, "name", "body");
      body.Set(arena_, "in", "body");
      if (with_body->body_required) body.Set(arena_, "required", true);
      body.Set(arena_, "schema", Schema(*with_body->body));
      // Bodies that many operations take are shared, those of one kind are not.
      const bool generic = with_body->body->ends_with(".Patch") || with_body->body->ends_with(".DeleteOptions");
      list.Append(arena_, generic ? Shared("body", body) : body);
    }
    for (const OpenAPIParameter& parameter : parameters) {
      Value value = Map();
      value.Set(arena_, "name", Text(parameter.name));
      value.Set(arena_, "in", Text(parameter.in));
      if (parameter.required()) value.Set(arena_, "required", true);
      if (!parameter.description.empty()) value.Set(arena_, "description", Text(parameter.description));
      Value type = v3_ ? Map() : value;
      type.Set(arena_, "type", parameter.type);
      type.Set(arena_, "uniqueItems", true);
      if (v3_) value.Set(arena_, "schema", type);
      // kubectl looks for these in the operation itself.
      const bool stays =
          v3_ || parameter.name == "name" || parameter.name == "dryRun" || parameter.name == "fieldValidation";
      list.Append(arena_, stays ? value : Shared(parameter.name, value));
    }
    return list;
  }

  // `name-` and eight characters of a hash of the parameter's text.
  Value Shared(std::string_view name, const Value& parameter) {
    std::uint64_t hash = 14695981039346656037ULL;  // FNV-1
    for (const char c : object::ToJSON(parameter)) {
      hash *= 1099511628211ULL;
      hash ^= static_cast<std::uint8_t>(c);
    }
    std::string bytes;
    for (int shift = 56; shift >= 16; shift -= 8) bytes += static_cast<char>(hash >> shift);
    const std::string key = std::string(name) + "-" + base::Base64URLEncode(bytes);
    if (!shared_.Has(key)) shared_.Set(arena_, arena_.Copy(key), parameter);
    Value reference = Map();
    reference.Set(arena_, "$ref", Text("#/parameters/" + key));
    return reference;
  }

  Arena& arena_;
  bool v3_;
  DefinitionWriter definitions_;
  Value paths_;
  Value shared_;
};

std::string KeyOf(const schema::Package& package) {
  return (package.group.empty() ? "api/" : "apis/" + std::string(package.group) + "/") + std::string(package.version);
}

}  // namespace

std::vector<std::string> OpenAPIv3Keys(std::span<const DiscoveryGroup> groups) {
  std::vector<std::string> keys;
  for (const auto& [key, paths] : DocumentPaths(groups)) keys.push_back(key);
  for (const DiscoveryGroup& group : groups) {
    for (const schema::Package* package : group.versions) keys.push_back(KeyOf(*package));
  }
  std::ranges::sort(keys);
  return keys;
}

std::string OpenAPIv3Document(std::string_view key, std::span<const DiscoveryGroup> groups, const IsServed& served) {
  Arena arena;
  for (const DiscoveryGroup& group : groups) {
    for (const schema::Package* package : group.versions) {
      if (KeyOf(*package) != key) continue;
      Writer writer(arena, OpenAPIFormat::kV3, groups, package);
      writer.AddPaths(GroupVersionPaths(*package, served));
      return writer.V3();
    }
  }
  auto documents = DocumentPaths(groups);
  const auto found = documents.find(std::string(key));
  if (found == documents.end()) return {};
  Writer writer(arena, OpenAPIFormat::kV3, groups, nullptr);
  writer.AddPaths(std::move(found->second));
  return writer.V3();
}

std::string OpenAPIv3Root(const std::map<std::string, std::string>& etags,
                          const std::vector<std::pair<std::string, std::string>>& others) {
  Arena arena;
  Value paths = Value::Map(arena);
  for (const auto& [key, etag] : etags) {
    Value entry = Value::Map(arena);
    const std::string hash(base::ReplaceAll(etag, "\"", ""));
    entry.Set(arena, "serverRelativeURL", Value::String(arena, "/openapi/v3/" + key + "?hash=" + hash));
    paths.Set(arena, arena.Copy(key), entry);
  }
  for (const auto& [key, url] : others) {
    if (paths.Has(key)) continue;
    Value entry = Value::Map(arena);
    entry.Set(arena, "serverRelativeURL", Value::String(arena, url));
    paths.Set(arena, arena.Copy(key), entry);
  }
  if (!others.empty()) paths.SortMembers();
  Value root = Value::Map(arena);
  root.Set(arena, "paths", paths);
  return object::ToJSON(root);
}

void AppendCustomResourcePathsV2(std::string& out, const OpenAPICustomResource& resource) {
  Arena arena;
  Writer writer(arena, OpenAPIFormat::kV2, {}, nullptr);
  writer.AddPaths(CustomResourcePaths(resource));
  out += "," + writer.PathMembers();
}

std::string CustomResourceDocumentV3(std::span<const OpenAPICustomResource> resources, std::string_view models) {
  std::string paths;
  std::string definitions;
  Arena arena;
  Writer writer(arena, OpenAPIFormat::kV3, {}, nullptr);
  for (const std::string_view name : {"ObjectMeta", "ListMeta"})
    writer.Need("io.k8s.apimachinery.pkg.apis.meta.v1." + std::string(name));
  for (const OpenAPICustomResource& resource : resources) {
    writer.Leave(resource.model);
    writer.Leave(resource.list_model);
    writer.AddPaths(CustomResourcePaths(resource));
  }
  return "{\"components\":{\"schemas\":{" + std::string(models) + "," + writer.DefinitionMembers() +
         "}},\"info\":{\"title\":\"Kubernetes CRD Swagger\",\"version\":\"v0.1.0\"},\"openapi\":\"3.0.0\",\"paths\":{" +
         writer.PathMembers() + "}}";
}

std::string OpenAPIv2Document(std::span<const DiscoveryGroup> groups, const IsServed& served) {
  Arena arena;
  Writer writer(arena, OpenAPIFormat::kV2, groups, nullptr);
  OpenAPIPaths all;
  for (auto& [key, paths] : DocumentPaths(groups)) all.merge(paths);
  for (const DiscoveryGroup& group : groups) {
    for (const schema::Package* package : group.versions) {
      OpenAPIPaths paths = GroupVersionPaths(*package, served);
      all.merge(paths);
    }
  }
  writer.AddPaths(std::move(all));
  return writer.V2();
}

}  // namespace keelson::apidocs
