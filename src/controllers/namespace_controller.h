// Deletes what is in a namespace that is being deleted, then the namespace (upstream's NamespaceController with its
// namespacedResourcesDeleter): pods first, then every other kind that discovery tells of.
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewNamespaceController(ControllerContext context);

}  // namespace keelson::controllers
