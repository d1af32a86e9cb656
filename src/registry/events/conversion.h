// events.k8s.io/v1 and core/v1 Events are one object under two sets of names.
#pragma once

#include "base/arena.h"
#include "object/value.h"

namespace keelson::registry {

Value EventToHub(base::Arena& arena, const Value& event);    // events.k8s.io/v1 to core/v1
Value EventFromHub(base::Arena& arena, const Value& event);  // and back

}  // namespace keelson::registry
