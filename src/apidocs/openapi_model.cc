#include "apidocs/openapi_model.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/strings.h"
#include "schema/facts.h"
#include "schema/types.h"

namespace keelson::apidocs {
namespace {

using schema::Package;
using schema::Resource;
using schema::Subresource;

constexpr std::string_view kJSON = "application/json";
constexpr std::string_view kYAML = "application/yaml";
constexpr std::string_view kProtobuf = "application/vnd.kubernetes.protobuf";
constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";

const std::vector<std::string_view> kAnything = {"*/*"};
const std::vector<std::string_view> kObjects = {kJSON, kYAML, kProtobuf};
const std::vector<std::string_view> kCustomObjects = {kJSON, kYAML};
const std::vector<std::string_view> kCustomPatches = {"application/json-patch+json", "application/merge-patch+json",
                                                      "application/apply-patch+yaml"};
const std::vector<std::string_view> kStreams = {kJSON, kYAML, kProtobuf, "application/json;stream=watch",
                                                "application/vnd.kubernetes.protobuf;stream=watch"};
const std::vector<std::string_view> kPatches = {"application/json-patch+json", "application/merge-patch+json",
                                                "application/strategic-merge-patch+json",
                                                "application/apply-patch+yaml"};

struct QueryRow {
  std::string_view name;
  std::string_view type;
  std::string_view description;
};

constexpr QueryRow kListQuery[] = {
    {"allowWatchBookmarks", "boolean", "Asks for events of type BOOKMARK in a watch."},
    {"continue", "string", "The continue value of the page before, to get the next one."},
    {"fieldSelector", "string", "Restricts the objects by their fields."},
    {"labelSelector", "string", "Restricts the objects by their labels."},
    {"limit", "integer", "The most objects that a page may hold."},
    {"resourceVersion", "string", "The resource version to answer from or to watch from."},
    {"resourceVersionMatch", "string", "How resourceVersion is taken: Exact or NotOlderThan."},
    {"sendInitialEvents", "boolean", "Begins a watch with the objects as they are."},
    {"shardSelector", "string", "Restricts the objects to a shard."},
    {"timeoutSeconds", "integer", "The most seconds that the request may last."},
    {"watch", "boolean", "Asks for changes as they come instead of a list."},
};
constexpr QueryRow kDeleteQuery[] = {
    {"dryRun", "string", "All: everything is checked, nothing is kept."},
    {"gracePeriodSeconds", "integer", "The seconds until the object goes; zero means at once."},
    {"ignoreStoreReadErrorWithClusterBreakingPotential", "boolean", "Deletes an object that cannot be read."},
    {"orphanDependents", "boolean", "Deprecated: propagationPolicy says what becomes of dependents."},
    {"propagationPolicy", "string", "What becomes of dependents: Orphan, Background or Foreground."},
};
constexpr QueryRow kWriteQuery[] = {
    {"dryRun", "string", "All: everything is checked, nothing is kept."},
    {"fieldManager", "string", "The name that the change is tracked under."},
    {"fieldValidation", "string", "What happens to unknown or duplicate fields: Ignore, Warn or Strict."},
};
constexpr QueryRow kPatchQuery[] = {
    {"dryRun", "string", "All: everything is checked, nothing is kept."},
    {"fieldManager", "string", "The name that the change is tracked under; required for apply."},
    {"fieldValidation", "string", "What happens to unknown or duplicate fields: Ignore, Warn or Strict."},
    {"force", "boolean", "Takes over fields that others own; for apply only."},
};
constexpr QueryRow kPretty = {"pretty", "string", "true: the answer is indented."};

void AddQuery(std::vector<OpenAPIParameter>& out, std::span<const QueryRow> rows) {
  for (const QueryRow& row : rows)
    out.push_back({std::string(row.name), "query", row.type, std::string(row.description)});
}

std::string Title(std::string_view text) {
  std::string out(text);
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

// rbac.authorization.k8s.io: RbacAuthorization.
std::string GroupName(std::string_view group) {
  if (group.empty()) return "Core";
  if (group.ends_with(".k8s.io")) group.remove_suffix(7);
  std::string out;
  for (const std::string_view part : base::Split(group, '.')) out += Title(part);
  return out;
}

std::string LowerFirst(std::string text) {
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

class Builder {
 public:
  Builder(const Package& package, const IsServed& served) : package_(package), served_(served) {
    group_ = GroupName(package.group);
    version_ = Title(package.version);
    tag_ = LowerFirst(group_) + "_" + std::string(package.version);
    root_ = package.group.empty() ? "/api/" + std::string(package.version)
                                  : "/apis/" + std::string(package.group) + "/" + std::string(package.version);
  }

  OpenAPIPaths Build() {
    OpenAPIOperation list =
        Document("get" + group_ + version_ + "APIResources", tag_, std::string(kMeta) + "APIResourceList");
    list.description = "get available resources";
    paths_[root_ + "/"].push_back(std::move(list));
    for (const Resource& resource : package_.resources) {
      if (!served_ || served_(resource, "")) AddResource(resource);
      for (const Subresource& sub : resource.subresources) {
        if (!served_ || served_(resource, sub.name)) AddSubresource(resource, sub);
      }
    }
    return std::move(paths_);
  }

  static OpenAPIOperation Document(std::string id, std::string tag, OpenAPISchema schema) {
    OpenAPIOperation operation;
    operation.method = "get";
    operation.id = std::move(id);
    operation.tag = std::move(tag);
    operation.consumes = kObjects;
    operation.produces = kObjects;
    operation.responses = {{200, std::move(schema)}};
    return operation;
  }

 private:
  // With what all operations on a resource have: the path's parameters and `pretty`.
  OpenAPIOperation On(const std::string& path, std::string_view method, std::string id, std::string_view action,
                      std::string_view kind, std::string_view kind_group, std::string_view kind_version) {
    OpenAPIOperation operation;
    operation.method = method;
    operation.id = std::move(id);
    operation.tag = tag_;
    operation.action = action;
    operation.group = kind_group;
    operation.version = kind_version;
    operation.kind = kind;
    operation.consumes = kAnything;
    operation.produces = kObjects;
    if (path.find("{name}") != std::string::npos)
      operation.parameters.push_back({"name", "path", "string", "name of the " + std::string(kind)});
    if (path.find("{namespace}") != std::string::npos) {
      operation.parameters.push_back({"namespace", "path", "string", "the namespace that the object is in"});
    }
    if (action != "connect") AddQuery(operation.parameters, std::span(&kPretty, 1));
    return operation;
  }
  OpenAPIOperation On(const std::string& path, std::string_view method, std::string id, std::string_view action,
                      const Resource& resource) {
    return On(path, method, std::move(id), action, resource.kind, resource.group, resource.version);
  }

  static bool Has(std::span<const std::string_view> verbs, std::string_view verb) {
    return std::ranges::find(verbs, verb) != verbs.end();
  }
  std::string Id(std::string_view verb, std::string_view rest) const {
    return std::string(verb) + group_ + version_ + std::string(rest);
  }

  void AddResource(const Resource& resource) {
    const std::string kind(resource.kind);
    const std::string scoped = (resource.namespaced ? "Namespaced" : "") + kind;
    const std::string plural(resource.plural);
    const std::string collection = root_ + (resource.namespaced ? "/namespaces/{namespace}/" : "/") + plural;
    const std::string item = collection + "/{name}";
    const OpenAPISchema object = DefinitionName(*resource.type);
    const auto list_type = std::ranges::find(package_.types, kind + "List", &schema::Struct::name);
    const OpenAPISchema list = list_type != package_.types.end() ? DefinitionName(*list_type) : "";

    if (Has(resource.verbs, "list")) {
      AddList(collection, Id("list", scoped), resource, list);
      if (resource.namespaced) AddList(root_ + "/" + plural, Id("list", kind + "ForAllNamespaces"), resource, list);
    }
    if (Has(resource.verbs, "create"))
      AddCreate(collection, Id("create", scoped), resource.kind, resource.group, resource.version, object);
    if (Has(resource.verbs, "deletecollection"))
      AddDeleteCollection(collection, Id("delete", "Collection" + scoped), resource);
    if (Has(resource.verbs, "get"))
      AddRead(item, Id("read", scoped), resource.kind, resource.group, resource.version, object);
    if (Has(resource.verbs, "update"))
      AddReplace(item, Id("replace", scoped), resource.kind, resource.group, resource.version, object);
    if (Has(resource.verbs, "patch"))
      AddPatch(item, Id("patch", scoped), resource.kind, resource.group, resource.version, object);
    if (Has(resource.verbs, "delete")) AddDelete(item, Id("delete", scoped), resource, object);
    if (Has(resource.verbs, "watch")) {
      const std::string watched = root_ + "/watch" + collection.substr(root_.size());
      AddWatch(watched, Id("watch", scoped + "List"), "watchlist", resource);
      AddWatch(watched + "/{name}", Id("watch", scoped), "watch", resource);
      if (resource.namespaced)
        AddWatch(root_ + "/watch/" + plural, Id("watch", kind + "ListForAllNamespaces"), "watchlist", resource);
    }
  }

  void AddList(const std::string& path, std::string id, const Resource& resource, const OpenAPISchema& list) {
    OpenAPIOperation operation = On(path, "get", std::move(id), "list", resource);
    operation.description = "list or watch objects of kind " + std::string(resource.kind);
    AddQuery(operation.parameters, kListQuery);
    operation.produces = kStreams;
    operation.responses = {{200, list}};
    paths_[path].push_back(std::move(operation));
  }

  void AddWatch(const std::string& path, std::string id, std::string_view action, const Resource& resource) {
    OpenAPIOperation operation = On(path, "get", std::move(id), action, resource);
    operation.description = "watch changes to objects of kind " + std::string(resource.kind) +
                            "; deprecated: use the watch parameter with a list";
    AddQuery(operation.parameters, kListQuery);
    operation.produces = kStreams;
    operation.responses = {{200, std::string(kMeta) + "WatchEvent"}};
    paths_[path].push_back(std::move(operation));
  }

  void AddCreate(const std::string& path, std::string id, std::string_view kind, std::string_view group,
                 std::string_view version, const OpenAPISchema& object) {
    OpenAPIOperation operation = On(path, "post", std::move(id), "post", kind, group, version);
    operation.description = "create an object of kind " + std::string(kind);
    AddQuery(operation.parameters, kWriteQuery);
    operation.body = object;
    operation.body_required = true;
    operation.responses = {{200, object}, {201, object}, {202, object}};
    paths_[path].push_back(std::move(operation));
  }

  void AddDeleteCollection(const std::string& path, std::string id, const Resource& resource) {
    OpenAPIOperation operation = On(path, "delete", std::move(id), "deletecollection", resource);
    operation.description = "delete the selected objects of kind " + std::string(resource.kind);
    for (const QueryRow& row : kListQuery) {
      if (row.name != "watch" && row.name != "allowWatchBookmarks") AddQuery(operation.parameters, std::span(&row, 1));
    }
    AddQuery(operation.parameters, kDeleteQuery);
    operation.body = std::string(kMeta) + "DeleteOptions";
    operation.responses = {{200, std::string(kMeta) + "Status"}};
    paths_[path].push_back(std::move(operation));
  }

  void AddRead(const std::string& path, std::string id, std::string_view kind, std::string_view group,
               std::string_view version, const OpenAPISchema& object) {
    OpenAPIOperation operation = On(path, "get", std::move(id), "get", kind, group, version);
    operation.description = "read the " + std::string(kind);
    operation.responses = {{200, object}};
    paths_[path].push_back(std::move(operation));
  }

  void AddReplace(const std::string& path, std::string id, std::string_view kind, std::string_view group,
                  std::string_view version, const OpenAPISchema& object) {
    OpenAPIOperation operation = On(path, "put", std::move(id), "put", kind, group, version);
    operation.description = "replace the " + std::string(kind);
    AddQuery(operation.parameters, kWriteQuery);
    operation.body = object;
    operation.body_required = true;
    operation.responses = {{200, object}, {201, object}};
    paths_[path].push_back(std::move(operation));
  }

  void AddPatch(const std::string& path, std::string id, std::string_view kind, std::string_view group,
                std::string_view version, const OpenAPISchema& object) {
    OpenAPIOperation operation = On(path, "patch", std::move(id), "patch", kind, group, version);
    operation.description = "change parts of the " + std::string(kind);
    AddQuery(operation.parameters, kPatchQuery);
    operation.consumes = kPatches;
    operation.body = std::string(kMeta) + "Patch";
    operation.body_required = true;
    operation.responses = {{200, object}, {201, object}};
    paths_[path].push_back(std::move(operation));
  }

  void AddDelete(const std::string& path, std::string id, const Resource& resource, const OpenAPISchema& object) {
    OpenAPIOperation operation = On(path, "delete", std::move(id), "delete", resource);
    operation.description = "delete the " + std::string(resource.kind);
    AddQuery(operation.parameters, kDeleteQuery);
    operation.body = std::string(kMeta) + "DeleteOptions";
    const OpenAPISchema answer = schema::FactsOf(resource).returns_deleted ? object : std::string(kMeta) + "Status";
    operation.responses = {{200, answer}, {202, answer}};
    paths_[path].push_back(std::move(operation));
  }

  void AddSubresource(const Resource& resource, const Subresource& sub) {
    const std::string path = root_ + (resource.namespaced ? "/namespaces/{namespace}/" : "/") +
                             std::string(resource.plural) + "/{name}/" + std::string(sub.name);
    const std::string scoped = (resource.namespaced ? "Namespaced" : "") + std::string(resource.kind) + Title(sub.name);
    const std::string_view kind = sub.kind.empty() ? resource.kind : sub.kind;
    const std::string_view group = sub.kind.empty() ? resource.group : sub.kind_group;
    const std::string_view version = sub.kind.empty() ? resource.version : sub.kind_version;
    const schema::Struct* type = sub.kind.empty() ? resource.type : sub.type;
    if (kind.ends_with("Options")) {
      AddConnect(path, scoped, sub, kind, type);
      return;
    }
    const OpenAPISchema object = type != nullptr ? DefinitionName(*type) : "";
    if (sub.name == "log") {
      OpenAPIOperation operation = On(path, "get", Id("read", scoped), "get", kind, group, version);
      operation.description = "read what a container wrote";
      AddOptions(operation, schema::types::core_v1::kPodLogOptions);
      std::erase_if(operation.parameters,
                    [](const OpenAPIParameter& parameter) { return parameter.name == "sinceTime"; });
      operation.produces.insert(operation.produces.begin(), "text/plain");
      operation.responses = {{200, ""}};
      paths_[path].push_back(std::move(operation));
      return;
    }
    if (Has(sub.verbs, "get")) AddRead(path, Id("read", scoped), kind, group, version, object);
    if (Has(sub.verbs, "update")) AddReplace(path, Id("replace", scoped), kind, group, version, object);
    if (Has(sub.verbs, "patch")) AddPatch(path, Id("patch", scoped), kind, group, version, object);
    if (Has(sub.verbs, "create")) AddCreate(path, Id("create", scoped), kind, group, version, object);
  }

  // The fields of an options kind as query parameters.
  static void AddOptions(OpenAPIOperation& operation, const schema::Struct& options) {
    for (const schema::Field* field : options.json_fields) {
      if (field->name == "kind" || field->name == "apiVersion") continue;
      const schema::Type* type = field->type->kind == schema::Kind::kList ? field->type->element : field->type;
      std::string_view name = "string";
      if (type->kind == schema::Kind::kBool) name = "boolean";
      if (type->kind == schema::Kind::kInt32 || type->kind == schema::Kind::kInt64) name = "integer";
      operation.parameters.push_back({std::string(field->name), "query", name, std::string(field->description)});
    }
  }

  void AddConnect(const std::string& path, const std::string& scoped, const Subresource& sub, std::string_view kind,
                  const schema::Struct* options) {
    static constexpr std::string_view kAll[] = {"delete", "get", "head", "options", "patch", "post", "put"};
    static constexpr std::string_view kBoth[] = {"get", "post"};
    const bool proxy = sub.name == "proxy";
    for (const std::string_view method :
         proxy ? std::span<const std::string_view>(kAll) : std::span<const std::string_view>(kBoth)) {
      const std::string verb = "connect" + group_ + version_ + Title(method);
      OpenAPIOperation operation = On(path, method, verb + scoped, "connect", kind, sub.kind_group, sub.kind_version);
      operation.description = "connect " + std::string(method) + " requests to " + std::string(sub.name);
      if (options != nullptr) AddOptions(operation, *options);
      operation.produces = kAnything;
      operation.responses = {{200, ""}};
      paths_[path].push_back(operation);
      if (!proxy) continue;
      operation.id = verb + scoped + "WithPath";
      operation.parameters.push_back({"path", "path", "string", "the path below the proxied root"});
      paths_[path + "/{path}"].push_back(std::move(operation));
    }
  }

  const Package& package_;
  const IsServed& served_;
  std::string group_, version_, tag_, root_;
  OpenAPIPaths paths_;
};

class CustomBuilder {
 public:
  explicit CustomBuilder(const OpenAPICustomResource& resource)
      : resource_(resource),
        group_(GroupName(resource.group)),
        version_(Title(resource.version)),
        scoped_((resource.namespaced ? "Namespaced" : "") + std::string(resource.kind)) {}

  OpenAPIPaths Build() {
    const std::string root = "/apis/" + std::string(resource_.group) + "/" + std::string(resource_.version);
    const std::string plural = "/" + std::string(resource_.plural);
    const std::string collection = root + (resource_.namespaced ? "/namespaces/{namespace}" : "") + plural;
    const std::string item = collection + "/{name}";
    const std::string kind(resource_.kind);
    if (resource_.namespaced) AddList(root + plural, Id("list", kind + "ForAllNamespaces"));
    AddList(collection, Id("list", scoped_));
    AddWrite(collection, "post", "create", "",
             {{200, resource_.model}, {201, resource_.model}, {202, resource_.model}});
    AddDeleteCollection(collection);
    AddItem(item, "", resource_.model);
    AddDelete(item);
    if (resource_.status) AddItem(item + "/status", "Status", resource_.model);
    if (resource_.scale) AddItem(item + "/scale", "Scale", "io.k8s.api.autoscaling.v1.Scale");
    return std::move(paths_);
  }

 private:
  std::string Id(std::string_view verb, std::string_view rest) const {
    return std::string(verb) + group_ + version_ + std::string(rest);
  }

  OpenAPIOperation On(const std::string& path, std::string_view method, std::string id, std::string_view action,
                      std::string_view verb) {
    OpenAPIOperation operation;
    operation.method = method;
    operation.id = std::move(id);
    operation.tag = LowerFirst(group_) + "_" + std::string(resource_.version);
    operation.action = action;
    operation.group = resource_.group;
    operation.version = resource_.version;
    operation.kind = resource_.kind;
    operation.description = std::string(verb) + " " + std::string(resource_.kind);
    operation.consumes = kCustomObjects;
    operation.produces = kCustomObjects;
    if (path.find("{name}") != std::string::npos)
      operation.parameters.push_back({"name", "path", "string", "name of the " + std::string(resource_.kind)});
    if (path.find("{namespace}") != std::string::npos)
      operation.parameters.push_back({"namespace", "path", "string", "the namespace that the object is in"});
    AddQuery(operation.parameters, std::span(&kPretty, 1));
    return operation;
  }

  void AddList(const std::string& path, std::string id) {
    OpenAPIOperation operation = On(path, "get", std::move(id), "list", "list or watch objects of kind");
    AddQuery(operation.parameters, kListQuery);
    operation.responses = {{200, resource_.list_model}};
    paths_[path].push_back(std::move(operation));
  }

  void AddDeleteCollection(const std::string& path) {
    OpenAPIOperation operation = On(path, "delete", Id("delete", "Collection" + scoped_), "deletecollection",
                                    "delete the selected objects of kind");
    AddQuery(operation.parameters, kListQuery);
    operation.responses = {{200, std::string(kMeta) + "Status"}};
    paths_[path].push_back(std::move(operation));
  }

  void AddDelete(const std::string& path) {
    OpenAPIOperation operation = On(path, "delete", Id("delete", scoped_), "delete", "delete the");
    AddQuery(operation.parameters, kDeleteQuery);
    operation.body = std::string(kMeta) + "DeleteOptions";
    operation.responses = {{200, std::string(kMeta) + "Status"}, {202, std::string(kMeta) + "Status"}};
    paths_[path].push_back(std::move(operation));
  }

  void AddWrite(const std::string& path, std::string_view method, std::string_view verb, std::string_view sub,
                std::vector<std::pair<int, OpenAPISchema>> responses) {
    OpenAPIOperation operation =
        On(path, method, Id(verb, scoped_ + std::string(sub)), method, std::string(verb) + " the");
    AddQuery(operation.parameters, kWriteQuery);
    operation.body = responses[0].second;
    operation.body_required = true;
    operation.responses = std::move(responses);
    paths_[path].push_back(std::move(operation));
  }

  // get, put and patch of an object or of a subresource.
  void AddItem(const std::string& path, std::string_view sub, const OpenAPISchema& object) {
    const std::string name = scoped_ + std::string(sub);
    OpenAPIOperation read = On(path, "get", Id("read", name), "get", "read the");
    for (const QueryRow& row : kListQuery) {
      if (row.name == "resourceVersion") AddQuery(read.parameters, std::span(&row, 1));
    }
    read.responses = {{200, object}};
    paths_[path].push_back(std::move(read));
    AddWrite(path, "put", "replace", sub, {{200, object}, {201, object}});
    OpenAPIOperation patch = On(path, "patch", Id("patch", name), "patch", "change parts of the");
    AddQuery(patch.parameters, kPatchQuery);
    patch.consumes = kCustomPatches;
    patch.body = std::string(kMeta) + "Patch";
    patch.body_required = true;
    patch.responses = {{200, object}};
    paths_[path].push_back(std::move(patch));
  }

  const OpenAPICustomResource& resource_;
  const std::string group_, version_, scoped_;
  OpenAPIPaths paths_;
};

}  // namespace

OpenAPIPaths CustomResourcePaths(const OpenAPICustomResource& resource) { return CustomBuilder(resource).Build(); }

std::string DefinitionName(const schema::Struct& type) {
  std::string package = base::ReplaceAll(type.package, "/", ".");
  std::string prefix = "io.k8s.api.";
  if (package.starts_with("meta.")) prefix = "io.k8s.apimachinery.pkg.apis.";
  if (package.starts_with("apiextensions.")) prefix = "io.k8s.apiextensions-apiserver.pkg.apis.";
  if (package.starts_with("apiregistration.")) prefix = "io.k8s.kube-aggregator.pkg.apis.";
  if (package == "runtime") prefix = "io.k8s.apimachinery.pkg.";
  return prefix + package + "." + std::string(type.name);
}

OpenAPIPaths GroupVersionPaths(const Package& package, const IsServed& served) {
  return Builder(package, served).Build();
}

std::map<std::string, OpenAPIPaths> DocumentPaths(std::span<const DiscoveryGroup> groups) {
  std::map<std::string, OpenAPIPaths> out;
  const std::string meta(kMeta);
  out["api"]["/api/"] = {Builder::Document("getCoreAPIVersions", "core", meta + "APIVersions")};
  out["apis"]["/apis/"] = {Builder::Document("getAPIVersions", "apis", meta + "APIGroupList")};
  for (const DiscoveryGroup& group : groups) {
    if (group.group.empty()) continue;
    const std::string name = GroupName(group.group);
    const std::string key = "apis/" + std::string(group.group);
    out[key]["/" + key + "/"] = {Builder::Document("get" + name + "APIGroup", LowerFirst(name), meta + "APIGroup")};
  }
  OpenAPIOperation version = Builder::Document("getCodeVersion", "version", "io.k8s.apimachinery.pkg.version.Info");
  version.consumes = version.produces = {kJSON};
  out["version"]["/version/"] = {version};
  OpenAPIOperation keys = Builder::Document("getServiceAccountIssuerOpenIDKeyset", "openid", "");
  keys.consumes.clear();
  keys.produces = {"application/jwk-set+json"};
  out["openid/v1/jwks"]["/openid/v1/jwks/"] = {keys};
  OpenAPIOperation configuration = Builder::Document("getServiceAccountIssuerOpenIDConfiguration", "WellKnown", "");
  configuration.consumes.clear();
  configuration.produces = {kJSON};
  out[".well-known/openid-configuration"]["/.well-known/openid-configuration/"] = {configuration};
  return out;
}

std::vector<OpenAPIParameter> TakeCommonParameters(std::vector<OpenAPIOperation>& operations) {
  for (OpenAPIOperation& operation : operations) std::ranges::sort(operation.parameters);
  if (operations.empty()) return {};
  std::vector<OpenAPIParameter> common = operations[0].parameters;
  for (const OpenAPIOperation& operation : operations) {
    std::erase_if(common, [&](const OpenAPIParameter& parameter) {
      return std::ranges::find(operation.parameters, parameter) == operation.parameters.end();
    });
  }
  for (OpenAPIOperation& operation : operations) {
    std::erase_if(operation.parameters, [&](const OpenAPIParameter& parameter) {
      return std::ranges::find(common, parameter) != common.end();
    });
  }
  return common;
}

}  // namespace keelson::apidocs
