// storagemigration.k8s.io: StorageVersionMigration.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> StoragemigrationStrategies();
}
