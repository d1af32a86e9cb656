// Keeps the status of ValidatingAdmissionPolicies: warnings of the type checker for the generation it has seen
// (upstream's validatingadmissionpolicystatus controller).
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewPolicyStatusController(ControllerContext context);

}  // namespace keelson::controllers
