// The discovery documents of what is installed: /api, /api/v1, /apis, /apis/<group>, /apis/<group>/<version>.
#pragma once

#include <string>

#include "endpoints/discovery_source.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

// Registers the documents' paths on `server`. Those of built-in groups are made once, the lists of groups when they
// changed.
// `cbor`: lists of resources are had in CBOR too.
// `source` (may be null): groups that come and go, listed after the built-in ones.
// `merger` (may be null): orders the groups of all, and adds those of others.
void InstallDiscovery(server::GenericAPIServer& server, const std::string& external_address, bool cbor,
                      std::shared_ptr<const endpoints::DiscoverySource> source,
                      std::shared_ptr<const endpoints::DiscoveryMerger> merger);

}  // namespace keelson::controlplane
