// apiregistration.k8s.io: APIService.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> ApiregistrationStrategies();
}
