// autoscaling: HorizontalPodAutoscaler (hub v2).
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> AutoscalingStrategies();
}
