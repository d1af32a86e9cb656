#include "apidocs/discovery_documents.h"

#include <openssl/sha.h>

#include <algorithm>
#include <tuple>

#include "base/strings.h"
#include "object/json_text.h"
#include "schema/facts.h"
#include "storage/storage_factory.h"

namespace keelson::apidocs {
namespace {

using base::Arena;
using schema::Package;
using schema::Resource;
using schema::Subresource;

// GA, then beta, then alpha; higher numbers first. Names that are not Kubernetes versions come last.
struct ParsedVersion {
  int stage = 0;  // 3 GA, 2 beta, 1 alpha, 0 none
  std::int64_t major = 0;
  std::int64_t minor = 0;
};

ParsedVersion ParseVersion(std::string_view text) {
  ParsedVersion parsed;
  if (!text.starts_with('v')) return parsed;
  text.remove_prefix(1);
  const auto number = [&](std::int64_t& out) {
    const std::size_t size = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto value = size > 0 && text[0] != '0' ? base::ParseInt64(text.substr(0, size)) : std::nullopt;
    text.remove_prefix(size);
    out = value.value_or(0);
    return value.has_value();
  };
  ParsedVersion result;
  if (!number(result.major)) return parsed;
  if (text.empty()) {
    result.stage = 3;
    return result;
  }
  for (const auto& [word, stage] : {std::pair<std::string_view, int>{"alpha", 1}, {"beta", 2}}) {
    if (!text.starts_with(word)) continue;
    text.remove_prefix(word.size());
    if (!number(result.minor) || !text.empty()) return parsed;
    result.stage = stage;
    return result;
  }
  return parsed;
}

Value Texts(Arena& arena, std::span<const std::string_view> texts) {
  Value list = Value::List(arena, texts.size());
  for (const std::string_view text : texts) list.Append(arena, text);
  return list;
}

std::string_view GroupVersion(Arena& arena, const Package& package) {
  return package.group.empty() ? package.version : arena.Concat(arena.Concat(package.group, "/"), package.version);
}

bool IsForeign(const Resource& resource, const Subresource& sub) {
  return !sub.kind.empty() && (sub.kind_group != resource.group || sub.kind_version != resource.version);
}

bool IsStored(const Resource& resource) { return std::ranges::find(resource.verbs, "watch") != resource.verbs.end(); }

std::string HashOfStored(const Resource& resource) {
  const storage::ResourceLayout layout = storage::LayoutOf({std::string(resource.group), std::string(resource.plural)});
  return StorageVersionHash(layout.storage_version.group, layout.storage_version.version, resource.kind);
}

Value GroupVersionEntry(Arena& arena, const Package& package) {
  Value entry = Value::Map(arena, 2);
  entry.AppendMember(arena, "groupVersion", GroupVersion(arena, package));
  entry.AppendMember(arena, "version", package.version);
  return entry;
}

void AppendGroup(Arena& arena, Value out, const DiscoveryGroup& group) {
  out.AppendMember(arena, "name", group.group);
  Value versions = Value::List(arena, group.versions.size());
  for (const Package* package : group.versions) versions.Append(arena, GroupVersionEntry(arena, *package));
  out.AppendMember(arena, "versions", versions);
  out.AppendMember(arena, "preferredVersion", GroupVersionEntry(arena, *group.versions[0]));
}

std::string UpperHex(const unsigned char* bytes, std::size_t size) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    out += kHex[bytes[i] >> 4];
    out += kHex[bytes[i] & 15];
  }
  return out;
}

// Resources by name, with those of their subresources that are served, by name too.
std::vector<const Resource*> SortedResources(const Package& package) {
  std::vector<const Resource*> resources;
  for (const Resource& resource : package.resources) resources.push_back(&resource);
  std::ranges::sort(resources, {}, &Resource::plural);
  return resources;
}

std::vector<const Subresource*> SortedSubresources(const Resource& resource, const IsServed& served) {
  std::vector<const Subresource*> subresources;
  for (const Subresource& sub : resource.subresources) {
    if (!served || served(resource, sub.name)) subresources.push_back(&sub);
  }
  std::ranges::sort(subresources, {}, &Subresource::name);
  return subresources;
}

Value ResponseKind(Arena& arena, std::string_view group, std::string_view version, std::string_view kind) {
  Value value = Value::Map(arena, 3);
  value.AppendMember(arena, "group", group);
  value.AppendMember(arena, "version", version);
  value.AppendMember(arena, "kind", kind);
  return value;
}

Value AggregatedResource(Arena& arena, const Resource& resource, const IsServed& served) {
  Value out = Value::Map(arena, 8);
  out.AppendMember(arena, "resource", resource.plural);
  out.AppendMember(arena, "responseKind", ResponseKind(arena, "", "", resource.kind));
  out.AppendMember(arena, "scope", resource.namespaced ? "Namespaced" : "Cluster");
  out.AppendMember(arena, "singularResource", resource.singular);
  out.AppendMember(arena, "verbs", Texts(arena, resource.verbs));
  if (!resource.short_names.empty()) out.AppendMember(arena, "shortNames", Texts(arena, resource.short_names));
  if (!resource.categories.empty()) out.AppendMember(arena, "categories", Texts(arena, resource.categories));
  Value subresources = Value::List(arena);
  for (const Subresource* sub : SortedSubresources(resource, served)) {
    const bool foreign = IsForeign(resource, *sub);
    Value entry = Value::Map(arena, 3);
    entry.AppendMember(arena, "subresource", sub->name);
    entry.AppendMember(arena, "responseKind",
                       ResponseKind(arena, foreign ? sub->kind_group : "", foreign ? sub->kind_version : "",
                                    sub->kind.empty() ? resource.kind : sub->kind));
    entry.AppendMember(arena, "verbs", Texts(arena, sub->verbs));
    subresources.Append(arena, entry);
  }
  if (!subresources.empty()) out.AppendMember(arena, "subresources", subresources);
  return out;
}

}  // namespace

APIPriority PriorityOf(std::string_view group, std::string_view version) {
  for (const schema::VersionPriority& row : schema::VersionPriorities()) {
    if (row.group == group && row.version == version) return {row.group_priority, row.version_priority};
  }
  return {};
}

bool ComesBeforeAsVersion(std::string_view a, std::string_view b) {
  const ParsedVersion left = ParseVersion(a);
  const ParsedVersion right = ParseVersion(b);
  if (left.stage == 0 && right.stage == 0) return a < b;
  return std::tie(left.stage, left.major, left.minor) > std::tie(right.stage, right.major, right.minor);
}

std::vector<DiscoveryGroup> DiscoveryGroups(const std::function<bool(const Package&)>& enabled) {
  std::vector<DiscoveryGroup> groups;
  for (const Package* package : schema::Packages()) {
    if (!package->serves || package->resources.empty() || !enabled(*package)) continue;
    auto found = std::ranges::find(groups, package->group, &DiscoveryGroup::group);
    if (found == groups.end()) found = groups.insert(groups.end(), {package->group, {}});
    found->versions.push_back(package);
  }
  for (DiscoveryGroup& group : groups) {
    std::ranges::sort(group.versions, [](const Package* a, const Package* b) {
      const std::int32_t left = PriorityOf(a->group, a->version).version;
      const std::int32_t right = PriorityOf(b->group, b->version).version;
      return left != right ? left > right : ComesBeforeAsVersion(a->version, b->version);
    });
  }
  const auto priority = [](const DiscoveryGroup& group) {
    std::int32_t highest = 0;
    for (const Package* package : group.versions)
      highest = std::max(highest, PriorityOf(package->group, package->version).group);
    return highest;
  };
  std::ranges::sort(groups, [&](const DiscoveryGroup& a, const DiscoveryGroup& b) {
    if (a.group.empty() != b.group.empty()) return a.group.empty();
    const std::int32_t left = priority(a);
    const std::int32_t right = priority(b);
    return left != right ? left > right : a.group < b.group;
  });
  return groups;
}

std::string StorageVersionHash(std::string_view group, std::string_view version, std::string_view kind) {
  const std::string text = std::string(group) + "/" + std::string(version) + "/" + std::string(kind);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base::Base64Encode({reinterpret_cast<const char*>(digest), 8});
}

Value APIVersionsDocument(Arena& arena, std::span<const DiscoveryGroup> groups, std::string_view server_address) {
  Value document = Value::Map(arena);
  document.AppendMember(arena, "kind", "APIVersions");
  Value versions = Value::List(arena);
  for (const DiscoveryGroup& group : groups) {
    if (!group.group.empty()) continue;
    for (const Package* package : group.versions) versions.Append(arena, package->version);
  }
  document.AppendMember(arena, "versions", versions);
  Value address = Value::Map(arena, 2);
  address.AppendMember(arena, "clientCIDR", "0.0.0.0/0");
  address.AppendMember(arena, "serverAddress", Value::String(arena, server_address));
  Value addresses = Value::List(arena);
  addresses.Append(arena, address);
  document.AppendMember(arena, "serverAddressByClientCIDRs", addresses);
  return document;
}

Value APIGroupDocument(Arena& arena, const DiscoveryGroup& group) {
  Value document = Value::Map(arena);
  document.AppendMember(arena, "kind", "APIGroup");
  document.AppendMember(arena, "apiVersion", "v1");
  AppendGroup(arena, document, group);
  return document;
}

Value APIGroupListDocument(Arena& arena, std::span<const DiscoveryGroup> groups) {
  Value document = Value::Map(arena);
  document.AppendMember(arena, "kind", "APIGroupList");
  document.AppendMember(arena, "apiVersion", "v1");
  Value list = Value::List(arena);
  for (const DiscoveryGroup& group : groups) {
    if (group.group.empty()) continue;
    Value entry = Value::Map(arena);
    AppendGroup(arena, entry, group);
    list.Append(arena, entry);
  }
  document.AppendMember(arena, "groups", list);
  return document;
}

Value APIResourceListDocument(Arena& arena, const Package& package, const IsServed& served) {
  Value document = Value::Map(arena);
  document.AppendMember(arena, "kind", "APIResourceList");
  if (!package.group.empty()) document.AppendMember(arena, "apiVersion", "v1");
  document.AppendMember(arena, "groupVersion", GroupVersion(arena, package));
  Value resources = Value::List(arena);
  for (const Resource* resource : SortedResources(package)) {
    if (!served || served(*resource, "")) {
      Value entry = Value::Map(arena, 8);
      entry.AppendMember(arena, "name", resource->plural);
      entry.AppendMember(arena, "singularName", resource->singular);
      entry.AppendMember(arena, "namespaced", resource->namespaced);
      entry.AppendMember(arena, "kind", resource->kind);
      entry.AppendMember(arena, "verbs", Texts(arena, resource->verbs));
      if (!resource->short_names.empty()) entry.AppendMember(arena, "shortNames", Texts(arena, resource->short_names));
      if (!resource->categories.empty()) entry.AppendMember(arena, "categories", Texts(arena, resource->categories));
      if (IsStored(*resource))
        entry.AppendMember(arena, "storageVersionHash", Value::String(arena, HashOfStored(*resource)));
      resources.Append(arena, entry);
    }
    for (const Subresource* sub : SortedSubresources(*resource, served)) {
      Value entry = Value::Map(arena, 7);
      entry.AppendMember(arena, "name", arena.Concat(arena.Concat(resource->plural, "/"), sub->name));
      entry.AppendMember(arena, "singularName", "");
      entry.AppendMember(arena, "namespaced", resource->namespaced);
      if (IsForeign(*resource, *sub)) {
        if (!sub->kind_group.empty()) entry.AppendMember(arena, "group", sub->kind_group);
        entry.AppendMember(arena, "version", sub->kind_version);
      }
      entry.AppendMember(arena, "kind", sub->kind.empty() ? resource->kind : sub->kind);
      entry.AppendMember(arena, "verbs", Texts(arena, sub->verbs));
      resources.Append(arena, entry);
    }
  }
  document.AppendMember(arena, "resources", resources);
  return document;
}

Value AggregatedDiscoveryDocument(Arena& arena, std::span<const DiscoveryGroup> groups, const IsServed& served) {
  Value document = Value::Map(arena);
  document.AppendMember(arena, "kind", "APIGroupDiscoveryList");
  document.AppendMember(arena, "apiVersion", "apidiscovery.k8s.io/v2");
  document.AppendMember(arena, "metadata", Value::Map(arena));
  Value items = Value::List(arena);
  for (const DiscoveryGroup& group : groups) {
    Value item = Value::Map(arena, 2);
    Value metadata = Value::Map(arena);
    if (!group.group.empty()) metadata.AppendMember(arena, "name", group.group);
    item.AppendMember(arena, "metadata", metadata);
    Value versions = Value::List(arena);
    for (const Package* package : group.versions) {
      Value version = Value::Map(arena, 3);
      version.AppendMember(arena, "version", package->version);
      Value resources = Value::List(arena);
      for (const Resource* resource : SortedResources(*package)) {
        if (!served || served(*resource, "")) resources.Append(arena, AggregatedResource(arena, *resource, served));
      }
      version.AppendMember(arena, "resources", resources);
      version.AppendMember(arena, "freshness", "Current");
      versions.Append(arena, version);
    }
    item.AppendMember(arena, "versions", versions);
    items.Append(arena, item);
  }
  document.AppendMember(arena, "items", items);
  return document;
}

std::string ETagOf(std::string_view text) {
  unsigned char digest[SHA512_DIGEST_LENGTH];
  SHA512(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return '"' + UpperHex(digest, sizeof digest) + '"';
}

}  // namespace keelson::apidocs
