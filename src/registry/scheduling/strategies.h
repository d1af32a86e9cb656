// scheduling.k8s.io: PriorityClass.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> SchedulingStrategies();
}
