#include "aggregator/discovery.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <limits>
#include <set>

#include "aggregator/proxy_handler.h"
#include "apidocs/discovery_documents.h"
#include "base/hash.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::aggregator {
namespace {

constexpr std::string_view kAccept =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
constexpr std::int32_t kCustomPriority = 1000;
constexpr std::int32_t kCustomVersionPriority = 100;

// Discovery data of one group version of a remote server.
struct RemoteVersion {
  std::string resources;  // JSON of the list; "" when nothing was ever fetched
  bool stale = true;
  friend bool operator==(const RemoteVersion&, const RemoteVersion&) = default;
};

Fetch FetchOf(std::string path) {
  Fetch fetch;
  fetch.path = std::move(path);
  fetch.headers.Add("Accept", kAccept);
  fetch.user = "system:kube-aggregator";
  fetch.groups = {"system:masters"};
  return fetch;
}

std::string Quoted(std::string_view text) {
  std::string out;
  object::AppendJSONString(out, text);
  return out;
}

std::string StringList(const Value& list) { return object::ToJSON(list); }

std::string ResponseKind(const Value& resource) {
  return "{\"group\":" + Quoted(resource["group"].as_string()) +
         ",\"version\":" + Quoted(resource["version"].as_string()) +
         ",\"kind\":" + Quoted(resource["kind"].as_string()) + "}";
}

std::string VersionJSON(const std::string& version, const RemoteVersion& known) {
  std::string out = "{\"version\":" + Quoted(version);
  if (!known.resources.empty() && known.resources != "[]") out += ",\"resources\":" + known.resources;
  return out + ",\"freshness\":" + (known.stale ? "\"Stale\"" : "\"Current\"") + "}";
}

std::int32_t BuiltInPriority(const apidocs::DiscoveryFragment& fragment) {
  if (fragment.group == "apiregistration.k8s.io") return std::numeric_limits<std::int32_t>::max();
  for (const auto& version : fragment.versions) {
    const auto priority = apidocs::PriorityOf(fragment.group, version.version);
    if (priority.group != 0) return priority.group;
  }
  return 0;
}

// One group while the documents are put together.
struct Group {
  std::string name;
  std::int32_t priority = 0;
  const apidocs::DiscoveryFragment* built_in = nullptr;
  const apidocs::DiscoveryFragment* custom = nullptr;
  std::vector<APIServicePtr> services;
  bool remote = false;
  std::size_t place = 0;  // among groups of the same priority
};

// A version of a group with what it is sorted by.
struct Version {
  std::string name;
  std::int32_t priority = 0;
  std::string json;
};

void SortVersions(std::vector<Version>& versions) {
  std::ranges::sort(versions, [](const Version& a, const Version& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return apidocs::ComesBeforeAsVersion(a.name, b.name);
  });
}

}  // namespace

std::map<std::string, std::string> VersionsOf(std::string_view document) {
  std::map<std::string, std::string> out;
  base::Arena arena;
  const auto list = object::ParseJSON(arena, document);
  if (!list || (*list)["kind"].as_string() != "APIGroupDiscoveryList") return out;
  const auto add_kind = [&arena](Value resource) {
    if (resource.is_map() && resource["responseKind"].is_null())
      resource.Set(arena, "responseKind", *object::ParseJSON(arena, R"({"group":"","version":"","kind":""})"));
  };
  for (const Value& group : (*list)["items"].items()) {
    const std::string name(group.Get("metadata", "name").as_string());
    for (const Value& version : group["versions"].items()) {
      const Value resources = version["resources"];
      for (const Value& resource : resources.items()) {
        add_kind(resource);
        for (const Value& subresource : resource["subresources"].items()) add_kind(subresource);
      }
      out[name + "/" + std::string(version["version"].as_string())] =
          resources.is_list() ? object::ToJSON(resources) : "[]";
    }
  }
  return out;
}

std::string ResourcesFromLegacy(std::string_view api_resource_list) {
  base::Arena arena;
  const auto list = object::ParseJSON(arena, api_resource_list);
  if (!list || (*list)["kind"].as_string() != "APIResourceList") return {};
  struct Resource {
    std::string head;
    std::vector<std::string> subresources;
  };
  std::vector<std::pair<std::string, Resource>> resources;
  base::StringViewMap<std::size_t> places;  // in `resources`, of the first of a name
  const auto find = [&](std::string_view name) -> Resource* {
    const auto found = places.find(name);
    return found == places.end() ? nullptr : &resources[found->second].second;
  };
  for (const Value& item : (*list)["resources"].items()) {
    const std::string name(item["name"].as_string());
    if (name.find('/') != std::string::npos) continue;
    std::string head = "{\"resource\":" + Quoted(name) + ",\"responseKind\":" + ResponseKind(item);
    head += item["namespaced"].as_bool() ? ",\"scope\":\"Namespaced\"" : ",\"scope\":\"Cluster\"";
    head += ",\"singularResource\":" + Quoted(item["singularName"].as_string());
    head += ",\"verbs\":" + (item["verbs"].is_list() ? StringList(item["verbs"]) : std::string("[]"));
    if (!item["shortNames"].empty()) head += ",\"shortNames\":" + StringList(item["shortNames"]);
    if (!item["categories"].empty()) head += ",\"categories\":" + StringList(item["categories"]);
    places.try_emplace(item["name"].as_string(), resources.size());
    resources.emplace_back(name, Resource{std::move(head), {}});
  }
  for (const Value& item : (*list)["resources"].items()) {
    const std::string_view name = item["name"].as_string();
    const auto slash = name.find('/');
    if (slash == std::string_view::npos) continue;
    Resource* parent = find(name.substr(0, slash));
    if (parent == nullptr) {
      std::string head = "{\"resource\":" + Quoted(name.substr(0, slash));
      head += item["namespaced"].as_bool() ? ",\"scope\":\"Namespaced\"" : ",\"scope\":\"Cluster\"";
      places.try_emplace(name.substr(0, slash), resources.size());
      resources.emplace_back(std::string(name.substr(0, slash)),
                             Resource{head + ",\"singularResource\":\"\",\"verbs\":[]", {}});
      parent = &resources.back().second;
    }
    std::string text = "{\"subresource\":" + Quoted(name.substr(slash + 1));
    if (!item["kind"].as_string().empty()) text += ",\"responseKind\":" + ResponseKind(item);
    text += ",\"verbs\":" + (item["verbs"].is_list() ? StringList(item["verbs"]) : std::string("[]")) + "}";
    parent->subresources.push_back(std::move(text));
  }
  std::string out = "[";
  for (const auto& [name, resource] : resources) {
    if (out.size() > 1) out += ',';
    out += resource.head;
    if (!resource.subresources.empty()) out += ",\"subresources\":[" + base::Join(resource.subresources, ",") + "]";
    out += '}';
  }
  return out + "]";
}

struct DiscoveryAggregator::Impl : std::enable_shared_from_this<Impl> {
  Impl(async::IOPool& io, Backends& backends) : io(io), backends(backends) {}
  async::IOPool& io;
  Backends& backends;
  async::Gate gate;
  mutable std::mutex mutex;
  std::uint64_t generation = 1;
  APIServices services;
  std::map<std::string, RemoteVersion> remote;  // by "<group>/<version>"
  std::set<std::string> fetching;               // service keys

  void Set(const std::string& key, RemoteVersion version) {
    std::lock_guard lock(mutex);
    RemoteVersion& held = remote[key];
    if (held == version) return;
    held = std::move(version);
    ++generation;
  }

  void MarkStale(const std::string& key) {
    std::lock_guard lock(mutex);
    RemoteVersion& held = remote[key];
    if (!std::exchange(held.stale, true)) ++generation;
  }

  // All group versions of one remote server.
  static Awaitable<void> FetchAll(std::shared_ptr<Impl> self, std::vector<APIServicePtr> members, std::string key,
                                  async::Gate::Entry entry) {
    // co_spawn may run a coroutine's beginning at once, and the caller holds the lock.
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    const auto whole = co_await self->backends.Do(self->backends.Get(members.front()), FetchOf("/apis"));
    std::map<std::string, std::string> found;
    if (whole.ok() && whole->status == 200) found = VersionsOf(whole->body);
    for (const auto& service : members) {
      const std::string name = service->group + "/" + service->version;
      if (const auto at = found.find(name); at != found.end()) {
        self->Set(name, {at->second, false});
        continue;
      }
      const auto legacy = co_await self->backends.Do(self->backends.Get(service), FetchOf(service->Path()));
      std::string resources = legacy.ok() && legacy->status == 200 ? ResourcesFromLegacy(legacy->body) : "";
      if (resources.empty()) {
        self->MarkStale(name);
      } else {
        self->Set(name, {std::move(resources), false});
      }
    }
    std::lock_guard lock(self->mutex);
    self->fetching.erase(key);
    (void)entry;
  }

  // REQUIRES: mutex held.
  void Start(const std::string& key, std::vector<APIServicePtr> members) {
    if (!fetching.insert(key).second) return;
    auto entry = gate.Enter();
    if (!entry) return;
    asio::co_spawn(io.Next(), FetchAll(shared_from_this(), std::move(members), key, *std::move(entry)), asio::detached);
  }

  std::map<std::string, std::vector<APIServicePtr>> ByService() const {
    std::map<std::string, std::vector<APIServicePtr>> out;
    for (auto at = services.begin(); at.valid(); at.Next()) {
      const APIServicePtr& service = *at;
      if (!service->local && !service->group.empty()) out[service->ServiceKey()].push_back(service);
    }
    return out;
  }

  std::string Versions(const Group& group) const {
    std::vector<Version> versions;
    std::set<std::string> seen;
    for (const auto& service : group.services) {
      if (service->local) continue;
      const auto known = remote.find(service->group + "/" + service->version);
      versions.push_back({service->version, service->version_priority,
                          VersionJSON(service->version, known == remote.end() ? RemoteVersion() : known->second)});
      seen.insert(service->version);
    }
    base::Arena arena;
    for (const auto* fragment : {group.built_in, group.custom}) {
      if (fragment == nullptr) continue;
      const auto parsed = object::ParseJSON(arena, fragment->aggregated);
      if (!parsed) continue;
      for (const Value& version : (*parsed)["versions"].items()) {
        const std::string name(version["version"].as_string());
        if (!seen.insert(name).second) continue;
        std::int32_t priority = kCustomVersionPriority;
        for (const auto& service : group.services) {
          if (service->version == name) priority = service->version_priority;
        }
        versions.push_back({name, priority, object::ToJSON(version)});
      }
    }
    SortVersions(versions);
    std::string out;
    for (const Version& version : versions) out += (out.empty() ? "" : ",") + version.json;
    return out;
  }
};

DiscoveryAggregator::DiscoveryAggregator(async::IOPool& io, Backends& backends)
    : impl_(std::make_shared<Impl>(io, backends)) {}

DiscoveryAggregator::~DiscoveryAggregator() { Stop(); }

void DiscoveryAggregator::Publish(APIServices services) {
  std::lock_guard lock(impl_->mutex);
  const auto before = impl_->ByService();
  impl_->services = std::move(services);
  ++impl_->generation;
  std::set<std::string> kept;
  for (auto at = impl_->services.begin(); at.valid(); at.Next()) {
    if (!(*at)->local) kept.insert((*at)->group + "/" + (*at)->version);
  }
  std::erase_if(impl_->remote, [&](const auto& entry) { return !kept.contains(entry.first); });
  for (const auto& [key, members] : impl_->ByService()) {
    const auto known = before.find(key);
    const bool same = known != before.end() &&
                      std::ranges::equal(known->second, members, [](const auto& a, const auto& b) { return *a == *b; });
    if (!same) impl_->Start(key, members);
  }
}

void DiscoveryAggregator::PublishLocal(APIServices services) {
  std::lock_guard lock(impl_->mutex);
  impl_->services = std::move(services);
  ++impl_->generation;
}

void DiscoveryAggregator::Refresh() {
  std::lock_guard lock(impl_->mutex);
  for (const auto& [key, members] : impl_->ByService()) impl_->Start(key, members);
}

void DiscoveryAggregator::Stop() { impl_->gate.Close(); }

std::uint64_t DiscoveryAggregator::Generation() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->generation;
}

apidocs::DiscoveryMerger::Merged DiscoveryAggregator::Merge(
    const std::vector<apidocs::DiscoveryFragmentPtr>& built_in,
    const std::vector<apidocs::DiscoveryFragmentPtr>& custom) const {
  std::lock_guard lock(impl_->mutex);
  std::vector<Group> groups;  // built-in ones in their order, then the others by name
  std::map<std::string, std::size_t, std::less<>> index;
  for (const auto& fragment : built_in) {
    index[fragment->group] = groups.size();
    groups.push_back({.name = fragment->group, .priority = BuiltInPriority(*fragment), .built_in = fragment.get()});
  }
  std::map<std::string, Group> others;
  const auto at = [&](const std::string& name) -> Group& {
    if (const auto found = index.find(name); found != index.end()) return groups[found->second];
    Group& group = others[name];
    group.name = name;
    return group;
  };
  for (const auto& fragment : custom) {
    Group& group = at(fragment->group);
    group.custom = fragment.get();
    group.priority = std::max(group.priority, kCustomPriority);
  }
  for (auto next = impl_->services.begin(); next.valid(); next.Next()) {
    const APIServicePtr& service = *next;
    if (service->group.empty()) continue;
    Group& group = at(service->group);
    group.services.push_back(service);
    group.remote = group.remote || !service->local;
    if (group.built_in == nullptr) group.priority = std::max(group.priority, service->group_priority);
  }
  for (auto& [name, group] : others) groups.push_back(std::move(group));
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].place = i;
  std::ranges::sort(groups, [](const Group& a, const Group& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.place < b.place;
  });
  Merged merged;
  for (const Group& group : groups) {
    const auto* own = group.built_in != nullptr ? group.built_in : group.custom;
    const bool single = !group.remote && own != nullptr && !(group.built_in != nullptr && group.custom != nullptr);
    std::string plain = single ? own->api_group : APIGroupJSON(group.name, OrderedVersions(group.services));
    std::string whole = single ? own->aggregated : std::string();
    if (!single) {
      const std::string versions = impl_->Versions(group);
      if (!versions.empty())
        whole = "{\"metadata\":{\"name\":" + Quoted(group.name) + "},\"versions\":[" + versions + "]}";
    }
    merged.groups += (merged.groups.empty() ? "" : ",") + plain;
    if (!whole.empty()) merged.aggregated += (merged.aggregated.empty() ? "" : ",") + whole;
  }
  return merged;
}

}  // namespace keelson::aggregator
