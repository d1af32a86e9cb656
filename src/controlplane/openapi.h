// /openapi/v2, /openapi/v3 and its documents: made on first use, kept, served with hashes and cache headers.
#pragma once

#include "server/generic_api_server.h"

namespace keelson::controlplane {

void InstallOpenAPI(server::GenericAPIServer& server);

}  // namespace keelson::controlplane
