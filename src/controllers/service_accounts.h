// Every active namespace has a service account `default` (upstream's ServiceAccountsController).
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewServiceAccountsController(ControllerContext context);

}  // namespace keelson::controllers
