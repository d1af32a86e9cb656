// apiextensions.k8s.io: CustomResourceDefinition as an object. Serving what it defines is not here.
#pragma once

#include <memory>
#include <span>

#include "registry/rest_strategy.h"

namespace keelson::registry {
std::span<const Strategy> ApiextensionsStrategies();
// The strategy of a kind with deletion logic: a finalizer holds definitions until their instances are deleted. Null for
// rows of other kinds.
std::shared_ptr<const RESTStrategy> StatefulStrategy(const Strategy& row);
}  // namespace keelson::registry
