#include "controllers/resource_table.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/arena.h"
#include "base/url.h"
#include "object/json_reader.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::controllers {
namespace {

std::pair<std::string_view, std::string_view> SplitAPIVersion(std::string_view api_version) {
  const auto slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

// v2 before v1 before v2beta1 before v1alpha3, others last by name (Kubernetes' version priority).
std::tuple<int, std::int64_t, std::int64_t> Rank(std::string_view version) {
  std::size_t at = 1;
  const auto number = [&] {
    std::int64_t value = -1;
    for (; at < version.size() && version[at] >= '0' && version[at] <= '9' && at < 10; ++at)
      value = std::max<std::int64_t>(value, 0) * 10 + (version[at] - '0');
    return value;
  };
  if (!version.starts_with('v')) return {0, 0, 0};
  const std::int64_t major = number();
  if (major < 0) return {0, 0, 0};
  if (at == version.size()) return {3, major, 0};
  int stage = 0;
  for (const auto& [text, rank] : {std::pair<std::string_view, int>{"alpha", 1}, {"beta", 2}}) {
    if (version.substr(at).starts_with(text)) {
      stage = rank;
      at += text.size();
      break;
    }
  }
  const std::int64_t minor = stage == 0 ? -1 : number();
  if (minor < 0 || at != version.size()) return {0, 0, 0};
  return {stage, major, minor};
}

bool BetterVersion(const std::string& a, const std::string& b) {
  const auto first = Rank(a), second = Rank(b);
  if (std::get<0>(first) == 0 && std::get<0>(second) == 0) return a < b;
  return first > second;
}

std::string Text(std::optional<std::string_view> json) {
  base::Arena arena;
  const auto parsed = json ? object::ParseJSON(arena, *json) : std::nullopt;
  return parsed ? std::string(parsed->as_string()) : "";
}

std::optional<std::string_view> Member(std::optional<std::string_view> object, std::string_view key) {
  return object ? object::FindJSONMember(*object, key) : std::nullopt;
}

// Names of served versions. Schemas, which are most of a definition, are passed over.
std::vector<std::string> ServedVersions(std::string_view versions) {
  std::vector<std::string> served;
  object::JSONReader reader(versions);
  if (!reader.EnterList()) return served;
  while (reader.NextItem()) {
    const std::string_view version = reader.TakeValue();
    if (Member(version, "served") == "true") served.push_back(Text(Member(version, "name")));
  }
  return served;
}

bool IsEstablished(std::optional<std::string_view> conditions) {
  base::Arena arena;
  const auto parsed = conditions ? object::ParseJSON(arena, *conditions) : std::nullopt;
  if (!parsed) return false;
  return std::ranges::any_of(parsed->items(), [](Value condition) {
    return condition["type"].as_string() == "Established" && condition["status"].as_string() == "True";
  });
}

}  // namespace

std::string MappedResource::api_version() const { return group.empty() ? versions[0] : group + "/" + versions[0]; }

void ResourceTable::SetDiscovered(const Discovered& discovered) {
  discovered_.clear();
  for (const DiscoveredResource& found : discovered.resources) {
    MappedResource& mapped = discovered_[{found.resource.group, found.kind}];
    if (mapped.versions.empty()) {
      mapped.group = found.resource.group;
      mapped.resource = found.resource.resource;
      mapped.kind = found.kind;
      mapped.namespaced = found.namespaced;
      mapped.watchable = found.Has("delete") && found.Has("list") && found.Has("watch");
    }
    if (mapped.resource == found.resource.resource) mapped.versions.push_back(found.resource.version);
  }
}

const MappedResource* ResourceTable::SetDefinition(std::string_view name, std::string_view stored) {
  RemoveDefinition(name);
  const auto spec = Member(stored, "spec"), status = Member(stored, "status");
  const auto names = Member(status, "acceptedNames");
  MappedResource mapped;
  mapped.group = Text(Member(spec, "group"));
  mapped.resource = Text(Member(names, "plural"));
  mapped.kind = Text(Member(names, "kind"));
  mapped.namespaced = Text(Member(spec, "scope")) == "Namespaced";
  mapped.custom = mapped.watchable = true;
  if (const auto versions = Member(spec, "versions")) mapped.versions = ServedVersions(*versions);
  std::ranges::sort(mapped.versions, BetterVersion);
  if (!IsEstablished(Member(status, "conditions")) || mapped.versions.empty()) return nullptr;
  custom_kinds_[{mapped.group, mapped.kind}] = name;
  return &(custom_[std::string(name)] = std::move(mapped));
}

void ResourceTable::RemoveDefinition(std::string_view name) {
  const auto found = custom_.find(name);
  if (found == custom_.end()) return;
  const Key kind{found->second.group, found->second.kind};
  custom_kinds_.erase(kind);
  discovered_.erase(kind);
  custom_.erase(found);
}

const MappedResource* ResourceTable::Find(std::string_view api_version, std::string_view kind) const {
  const auto [group, version] = SplitAPIVersion(api_version);
  const auto serves = [version = version](const MappedResource& mapped) {
    return std::ranges::find(mapped.versions, version) != mapped.versions.end();
  };
  const Key key{std::string(group), std::string(kind)};
  if (const auto custom = custom_kinds_.find(key); custom != custom_kinds_.end()) {
    const MappedResource& mapped = custom_.find(custom->second)->second;
    return serves(mapped) ? &mapped : nullptr;
  }
  const auto found = discovered_.find(key);
  return found != discovered_.end() && serves(found->second) ? &found->second : nullptr;
}

std::vector<const MappedResource*> ResourceTable::All() const {
  std::vector<const MappedResource*> all;
  for (const auto& [name, mapped] : custom_) all.push_back(&mapped);
  for (const auto& [key, mapped] : discovered_) {
    if (!custom_.contains(mapped.resource + "." + mapped.group)) all.push_back(&mapped);
  }
  return all;
}

std::string ObjectPath(const MappedResource& resource, std::string_view api_version, std::string_view name_space,
                       std::string_view name) {
  std::string rest = resource.resource;
  if (!name.empty()) rest += "/" + base::PathEscape(name);
  return APIPath(api_version, resource.namespaced ? name_space : std::string_view(), rest);
}

}  // namespace keelson::controllers
