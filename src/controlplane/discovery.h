// The discovery documents of what is installed: /api, /api/v1, /apis, /apis/<group>, /apis/<group>/<version>.
#pragma once

#include <memory>
#include <string>

#include "apidocs/discovery_source.h"
#include "endpoints/peer_discovery.h"
#include "server/generic_api_server.h"
#include "telemetry/metrics.h"

namespace keelson::controlplane {

struct DiscoveryOptions {
  std::string external_address;                            // host:port, told by /api
  bool cbor = false;                                       // lists of resources are had in CBOR too
  std::shared_ptr<const apidocs::DiscoverySource> source;  // groups that come and go, after the built-in ones; or null
  std::shared_ptr<const apidocs::DiscoveryMerger> merger;  // orders the groups of all, and adds others'; or null
  bool peer_aware = false;  // gate UnknownVersionInteroperabilityProxy: requests with profile=nopeer are counted
  std::shared_ptr<const endpoints::PeerDiscovery> peers;  // what other servers add to /apis; or null
  telemetry::MetricsRegistry* metrics = nullptr;          // must outlive the server; or null
};

// Registers the documents' paths on `server`. Those of built-in groups are made once, the lists of groups when they
// changed.
void InstallDiscovery(server::GenericAPIServer& server, DiscoveryOptions options);

}  // namespace keelson::controlplane
