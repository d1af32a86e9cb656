// node.k8s.io: RuntimeClass.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> NodeStrategies();
}
