// resource.k8s.io: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {

std::span<const Strategy> ResourceStrategies();

// The parts, one file each.
extern const Strategy kDeviceClassStrategy;
extern const Strategy kResourceClaimStrategy;
extern const Strategy kResourceClaimTemplateStrategy;
extern const Strategy kResourceSliceStrategy;

}  // namespace keelson::registry
