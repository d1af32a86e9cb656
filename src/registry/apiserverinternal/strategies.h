// internal.apiserver.k8s.io: StorageVersion.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> ApiserverinternalStrategies();
}
