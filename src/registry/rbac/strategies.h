// rbac.authorization.k8s.io: Role, ClusterRole, RoleBinding, ClusterRoleBinding.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {
std::span<const Strategy> RBACStrategies();
}
