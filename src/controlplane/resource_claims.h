// Checks of resource claims that need more than the object: admin access by the namespace's label, and permissions for
// parts of the status (upstream's pkg/registry/resource/utils.go).
#pragma once

#include <functional>
#include <memory>

#include "auth/authorizer.h"
#include "controlplane/resource_storage.h"

namespace keelson::controlplane {

// Refuses claims and claim templates that request admin access in a namespace without the label, and writes of a
// claim's status without the permission for what they change: resourceclaims/binding for allocation and reservedFor,
// resourceclaims/driver for devices. For StorageConfig's customize; `storage` must outlive the Stores and is first used
// when they serve, as is `authorizer`.
using AuthorizerSource = std::function<std::shared_ptr<auth::Authorizer>()>;
void CustomizeResourceClaims(registry::Store::Options& options, const ResourceStorage& storage,
                             AuthorizerSource authorizer);

}  // namespace keelson::controlplane
