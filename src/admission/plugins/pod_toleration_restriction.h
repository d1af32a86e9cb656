// Tolerations that plugins add to pods, and the configuration file of PodTolerationRestriction. Internal to admission.
#pragma once

#include <span>
#include <string>

#include "object/value.h"

namespace keelson::admission {

// One list of all tolerations: of two of which one includes the other only the wider one is kept, of equal ones the
// first (upstream's MergeTolerations).
Value MergeTolerations(base::Arena& arena, std::span<const Value> all);

// Why a configuration cannot be used; "" when it can.
std::string CheckPodTolerationRestriction(Value configuration);

}  // namespace keelson::admission
