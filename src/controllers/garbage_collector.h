// Deletes objects whose owners are gone, and lets owners go whose deletion waits for their dependents (upstream's
// GarbageCollector). Metadata of every kind is followed, events excepted.
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewGarbageCollector(ControllerContext context);

}  // namespace keelson::controllers
