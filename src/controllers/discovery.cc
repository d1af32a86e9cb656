#include "controllers/discovery.h"

#include <algorithm>
#include <map>

#include "base/arena.h"
#include "object/json_text.h"
#include "object/value.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kAggregated =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

// Resources of one group. The first version is the group's preferred one.
void AddGroup(Value group, Discovered& out) {
  const std::string name(group.Get("metadata", "name").as_string());
  std::map<std::string, std::size_t, std::less<>> preferred;  // by resource: its index
  for (const Value version : group["versions"].items()) {
    const meta::GroupVersion group_version{name, std::string(version["version"].as_string())};
    if (version["freshness"].as_string() == "Stale") {
      const std::string text = group_version.ToString();
      out.failed_groups.emplace_back(text, "stale GroupVersion discovery: " + text);
      continue;
    }
    for (const Value resource : version["resources"].items()) {
      DiscoveredResource found;
      found.resource = {name, group_version.version, std::string(resource["resource"].as_string())};
      found.kind = resource.Get("responseKind", "kind").as_string();
      found.namespaced = resource["scope"].as_string() == "Namespaced";
      for (const Value verb : resource["verbs"].items()) found.verbs.emplace_back(verb.as_string());
      found.preferred = preferred.try_emplace(found.resource.resource, out.resources.size()).second;
      out.resources.push_back(std::move(found));
    }
  }
}

}  // namespace

bool DiscoveredResource::Has(std::string_view verb) const { return std::ranges::find(verbs, verb) != verbs.end(); }

std::string Discovered::Error() const {
  if (failed_groups.empty()) return "";
  std::string text = "unable to retrieve the complete list of server APIs: ";
  for (std::size_t i = 0; i < failed_groups.size(); ++i) {
    if (i > 0) text += ", ";
    text += failed_groups[i].first + ": " + failed_groups[i].second;
  }
  return text;
}

Awaitable<meta::Result<Discovered>> Discover(ClientPtr client) {
  Discovered discovered;
  for (const char* const path : {"/api", "/apis"}) {
    auto answer = co_await client->Do({.method = "GET", .target = path, .accept = kAggregated});
    if (!answer.ok()) co_return answer.error();
    base::Arena arena;
    const auto list = object::ParseJSON(arena, *answer);
    if (!list) co_return meta::NewInternalError("discovery of " + std::string(path) + " is no JSON");
    for (const Value group : (*list)["items"].items()) AddGroup(group, discovered);
  }
  std::ranges::sort(discovered.failed_groups);
  co_return discovered;
}

}  // namespace keelson::controllers
