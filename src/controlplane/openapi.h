// /openapi/v2, /openapi/v3 and its documents: made on first use, kept, served with hashes and cache headers.
#pragma once

#include "apidocs/discovery_source.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

// `source` may be null.
void InstallOpenAPI(server::GenericAPIServer& server, std::shared_ptr<const apidocs::DiscoverySource> source);

}  // namespace keelson::controlplane
