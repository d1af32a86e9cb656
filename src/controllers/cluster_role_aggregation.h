// Cluster roles with an aggregationRule have the rules of the roles that it selects (upstream's
// ClusterRoleAggregationController).
#pragma once

#include <memory>

#include "controllers/controller.h"

namespace keelson::controllers {

std::shared_ptr<Controller> NewClusterRoleAggregation(ControllerContext context);

}  // namespace keelson::controllers
