// The discovery documents of what is installed: /api, /api/v1, /apis, /apis/<group>, /apis/<group>/<version>.
#pragma once

#include <string>

#include "server/generic_api_server.h"

namespace keelson::controlplane {

// Makes the documents once and registers their paths on `server`.
// `cbor`: lists of resources are had in CBOR too.
void InstallDiscovery(server::GenericAPIServer& server, const std::string& external_address, bool cbor);

}  // namespace keelson::controlplane
