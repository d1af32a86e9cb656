// How the registry's Store treats one version of a custom resource (upstream's customResourceStrategy and its status
// strategy).
#pragma once

#include <memory>
#include <vector>

#include "apiextensions/custom_kind.h"
#include "registry/rest_strategy.h"

namespace keelson::apiextensions {

std::shared_ptr<const registry::RESTStrategy> NewStrategy(VersionKindPtr version);

}  // namespace keelson::apiextensions
