// The hub form of core, apps and batch types (see registry/hub_types.h).
#pragma once

#include "registry/hub_types.h"

namespace keelson::registry::core {

const HubTypes& CoreHubTypes();

}  // namespace keelson::registry::core
