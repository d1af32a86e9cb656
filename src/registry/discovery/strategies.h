// discovery.k8s.io: EndpointSlice.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> DiscoveryStrategies();
}
