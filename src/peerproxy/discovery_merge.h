// Aggregated discovery of several API servers as one list (upstream's peer-aggregated discovery). Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::peerproxy {

// One list with the items of all: what comes before something else in one list does so in the result; otherwise by
// name. Lists that contradict each other are merged by name.
std::vector<std::string> MergePreservingRelativeOrder(const std::vector<std::vector<std::string>>& lists);

struct ServerDiscovery {
  std::string server_id;
  Value groups;  // a list of APIGroupDiscovery
};
// The groups, versions and resources of all servers. A resource of several has the verbs and subresources of all, and
// otherwise what the server with the lowest ID says. The local list itself where peers add nothing to it. The result
// refers to the servers' Values.
Value MergeDiscovery(base::Arena& arena, std::string_view local_id, std::span<const ServerDiscovery> servers);

}  // namespace keelson::peerproxy
