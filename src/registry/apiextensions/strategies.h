// apiextensions.k8s.io: CustomResourceDefinition as an object. Serving what it defines is not here.
#pragma once

#include <memory>
#include <span>

#include "registry/rest_strategy.h"

namespace keelson::registry {
std::span<const Strategy> ApiextensionsStrategies();
// Definitions are not deleted before their instances are: a finalizer holds them back.
std::shared_ptr<const RESTStrategy> DefinitionStrategy(const Strategy& row);
}
