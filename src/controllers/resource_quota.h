// Keeps the status of resource quotas: what is allowed, and what is used now (upstream's resource quota controller).
// Usage is worked out anew when a quota changes and when objects that count go away (replenishment).
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewResourceQuotaController(ControllerContext context);

}  // namespace keelson::controllers
