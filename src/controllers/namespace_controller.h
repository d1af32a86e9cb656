// Deletes the contents of a terminating namespace, then the namespace (upstream's NamespaceController with its
// namespacedResourcesDeleter): pods first, then every other kind in discovery.
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewNamespaceController(ControllerContext context);

}  // namespace keelson::controllers
