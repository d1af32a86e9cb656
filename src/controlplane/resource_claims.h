// Authorization of admin access in resource claims: allowed only in namespaces with the admin-access label.
#pragma once

#include "controlplane/resource_storage.h"

namespace keelson::controlplane {

// Refuses claims and claim templates that request admin access in a namespace without the label. For StorageConfig's
// customize; `storage` must outlive the Stores and is first used when they serve.
void CustomizeResourceClaims(registry::Store::Options& options, const ResourceStorage& storage);

}  // namespace keelson::controlplane
