// The resources that the server serves, from its aggregated discovery: built-in, custom and aggregated resources alike.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/awaitable.h"
#include "controllers/client.h"
#include "meta/group_version.h"
#include "meta/status.h"

namespace keelson::controllers {

struct DiscoveredResource {
  meta::GroupVersionResource resource;
  std::string kind;
  bool namespaced = false;
  bool preferred = false;  // the version of choice for this resource (client-go's ServerPreferredResources)
  std::vector<std::string> verbs;

  bool Has(std::string_view verb) const;
  std::string api_version() const { return resource.group_version().ToString(); }
};

struct Discovered {
  std::vector<DiscoveredResource> resources;                       // without subresources, in discovery's order
  std::vector<std::pair<std::string, std::string>> failed_groups;  // group/version and why, by group/version

  // client-go's ErrGroupDiscoveryFailed; "" when nothing failed.
  std::string Error() const;
};

Awaitable<meta::Result<Discovered>> Discover(ClientPtr client);

}  // namespace keelson::controllers
