// Deletes objects whose owners are gone, and completes foreground deletion of owners once their dependents are gone
// (upstream's GarbageCollector). Metadata of every kind is followed, events excepted.
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewGarbageCollector(ControllerContext context);

}  // namespace keelson::controllers
