// apiextensions.k8s.io: CustomResourceDefinition as an object. Serving what it defines is not here.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> ApiextensionsStrategies();
}
