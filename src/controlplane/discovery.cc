#include "controlplane/discovery.h"

#include <openssl/sha.h>

#include <algorithm>

#include "base/strings.h"
#include "endpoints/documents.h"
#include "schema/schema.h"

namespace keelson::controlplane {
namespace {

using endpoints::APIGroupVersion;

std::string StorageVersionHash(const schema::Resource& resource) {
  const std::string text = std::string(resource.group) + "/" + std::string(resource.version) + "/" + std::string(resource.kind);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base::Base64Encode({reinterpret_cast<char*>(digest), 8});
}

Value Texts(base::Arena& arena, std::span<const std::string_view> texts) {
  Value list = Value::List(arena, texts.size());
  for (const auto text : texts) list.Append(arena, text);
  return list;
}

Value ResourceList(base::Arena& arena, const APIGroupVersion& version) {
  Value document = Value::Map(arena);
  document.Set(arena, "kind", "APIResourceList");
  if (!version.group().empty()) document.Set(arena, "apiVersion", "v1");
  document.Set(arena, "groupVersion", Value::String(arena, version.group().empty() ? version.version() : version.group() + "/" + version.version()));
  Value resources = Value::List(arena);
  const schema::Package* package = schema::FindPackage(version.group(), version.version());
  std::vector<std::pair<std::string, Value>> entries;
  for (const schema::Resource& resource : package->resources) {
    if (version.Find(resource.plural, "") == nullptr) continue;
    Value entry = Value::Map(arena);
    entry.Set(arena, "name", resource.plural);
    entry.Set(arena, "singularName", resource.singular);
    entry.Set(arena, "namespaced", resource.namespaced);
    entry.Set(arena, "kind", resource.kind);
    entry.Set(arena, "verbs", Texts(arena, resource.verbs));
    if (!resource.short_names.empty()) entry.Set(arena, "shortNames", Texts(arena, resource.short_names));
    if (!resource.categories.empty()) entry.Set(arena, "categories", Texts(arena, resource.categories));
    if (std::ranges::find(resource.verbs, "list") != resource.verbs.end()) {
      entry.Set(arena, "storageVersionHash", Value::String(arena, StorageVersionHash(resource)));
    }
    entries.emplace_back(resource.plural, entry);
    for (const schema::Subresource& sub : resource.subresources) {
      if (version.Find(resource.plural, sub.name) == nullptr) continue;
      Value child = Value::Map(arena);
      const std::string name = std::string(resource.plural) + "/" + std::string(sub.name);
      child.Set(arena, "name", Value::String(arena, name));
      child.Set(arena, "singularName", "");
      child.Set(arena, "namespaced", resource.namespaced);
      if (sub.kind_group != resource.group || sub.kind_version != resource.version) {
        if (!sub.kind_group.empty()) child.Set(arena, "group", sub.kind_group);
        child.Set(arena, "version", sub.kind_version);
      }
      child.Set(arena, "kind", sub.kind);
      child.Set(arena, "verbs", Texts(arena, sub.verbs));
      entries.emplace_back(name, child);
    }
  }
  std::ranges::sort(entries, {}, &std::pair<std::string, Value>::first);
  for (const auto& entry : entries) resources.Append(arena, entry.second);
  document.Set(arena, "resources", resources);
  return document;
}

Value GroupValue(base::Arena& arena, const server::APIGroupInfo& group, bool whole) {
  Value value = Value::Map(arena);
  if (whole) {
    value.Set(arena, "kind", "APIGroup");
    value.Set(arena, "apiVersion", "v1");
  }
  value.Set(arena, "name", std::string_view(group.group));
  Value versions = Value::List(arena);
  for (const auto& version : group.versions) {
    Value entry = Value::Map(arena);
    entry.Set(arena, "groupVersion", Value::String(arena, group.group + "/" + version->version()));
    entry.Set(arena, "version", std::string_view(version->version()));
    versions.Append(arena, entry);
  }
  value.Set(arena, "versions", versions);
  value.Set(arena, "preferredVersion", versions[std::size_t{0}]);
  return value;
}

void Register(server::GenericAPIServer& server, const std::string& path, bool listed, base::Arena& arena, Value document, std::string_view kind) {
  const endpoints::Handler handler = endpoints::NegotiatedDocument(arena, document, *schema::FindType("meta/v1", kind), kind);
  if (listed) {
    server.mux().Handle(path, handler);
  } else {
    server.mux().Unlisted(path, handler);
  }
  server.mux().Unlisted(path + "/", handler);
}

}  // namespace

void InstallDiscovery(server::GenericAPIServer& server, const std::string& external_address) {
  base::Arena arena;
  Value core = Value::Map(arena);
  core.Set(arena, "kind", "APIVersions");
  Value versions = Value::List(arena);
  Value groups = Value::List(arena);
  std::vector<const server::APIGroupInfo*> all = server.AllGroups();
  for (const server::APIGroupInfo* group : all) {
    for (const auto& version : group->versions) {
      if (group->group.empty()) versions.Append(arena, std::string_view(version->version()));
      Register(server, version->prefix(), false, arena, ResourceList(arena, *version), "APIResourceList");
    }
    if (group->group.empty()) continue;
    Register(server, "/apis/" + group->group, false, arena, GroupValue(arena, *group, true), "APIGroup");
    groups.Append(arena, GroupValue(arena, *group, false));
  }
  core.Set(arena, "versions", versions);
  Value address = Value::Map(arena);
  address.Set(arena, "clientCIDR", "0.0.0.0/0");
  address.Set(arena, "serverAddress", std::string_view(external_address));
  Value addresses = Value::List(arena);
  addresses.Append(arena, address);
  core.Set(arena, "serverAddressByClientCIDRs", addresses);
  Register(server, "/api", true, arena, core, "APIVersions");
  Value group_list = Value::Map(arena);
  group_list.Set(arena, "kind", "APIGroupList");
  group_list.Set(arena, "apiVersion", "v1");
  group_list.Set(arena, "groups", groups);
  Register(server, "/apis", true, arena, group_list, "APIGroupList");
}

}  // namespace keelson::controlplane
