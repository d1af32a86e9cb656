// autoscaling: HorizontalPodAutoscaler (hub v2), and Scale as the scale subresources check it.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> AutoscalingStrategies();
}
