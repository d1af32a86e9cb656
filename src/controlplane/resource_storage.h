// server/resource_storage.h under this folder's name.
#pragma once

#include "server/resource_storage.h"

namespace keelson::controlplane {

using server::ResourceStorage;
using server::StorageConfig;

}  // namespace keelson::controlplane
