// coordination.k8s.io: Lease, LeaseCandidate.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> CoordinationStrategies();
}
