// What a fresh server creates for itself: the system namespaces. Run as post-start hooks; every step may be repeated.
#pragma once

#include <memory>

#include "controlplane/resource_storage.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

void InstallBootstrapHooks(server::GenericAPIServer& server, ResourceStorage& storage);

}  // namespace keelson::controlplane
