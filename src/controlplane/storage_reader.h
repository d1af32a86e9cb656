// How admission plugins see the server's other objects.
#pragma once

#include <memory>

#include "admission/admission.h"
#include "auth/authorizer.h"
#include "controlplane/resource_storage.h"

namespace keelson::controlplane {

// `storage` must outlive it; `authorizer` is asked by plugins that need permission of the requester.
std::unique_ptr<admission::ObjectReader> NewStorageReader(ResourceStorage& storage,
                                                          std::shared_ptr<auth::Authorizer> authorizer);

}  // namespace keelson::controlplane
