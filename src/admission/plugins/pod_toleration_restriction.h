// The configuration file of PodTolerationRestriction. Internal to admission.
#pragma once

#include <string>

#include "object/value.h"

namespace keelson::admission {

// Why a configuration cannot be used; "" when it can.
std::string CheckPodTolerationRestriction(Value configuration);

}  // namespace keelson::admission
