// The permissions and resources that admission plugins look up, from the authorizer and the stored resources.
#pragma once

#include <memory>

#include "admission/permissions.h"
#include "auth/authorizer.h"
#include "controlplane/resource_storage.h"

namespace keelson::controlplane {

// `storage` must outlive it.
std::unique_ptr<admission::Permissions> NewAdmissionPermissions(const ResourceStorage& storage,
                                                                std::shared_ptr<auth::Authorizer> authorizer);

}  // namespace keelson::controlplane
