// Deletes finished jobs when their ttlSecondsAfterFinished is over (upstream's TTL after finished controller).
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewTTLAfterFinished(ControllerContext context);

}  // namespace keelson::controllers
