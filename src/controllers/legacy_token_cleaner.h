// Marks, and later deletes, secrets with service account tokens that were made automatically and have not been used for
// a year (upstream's LegacySATokenCleaner).
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewLegacyTokenCleaner(ControllerContext context);

}  // namespace keelson::controllers
