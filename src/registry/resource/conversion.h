// resource.k8s.io/v1beta1 beside v1: a request's fields are in the request itself rather than under `exactly`, a
// device's under `basic` rather than in the device itself. v1beta2 has v1's shape.
#pragma once

#include "base/arena.h"
#include "object/value.h"

namespace keelson::registry {

Value ResourceClaimToHub(base::Arena& arena, const Value& claim);  // v1beta1 to v1
Value ResourceClaimFromHub(base::Arena& arena, const Value& claim);
Value ResourceClaimTemplateToHub(base::Arena& arena, const Value& object);
Value ResourceClaimTemplateFromHub(base::Arena& arena, const Value& object);
Value ResourceSliceToHub(base::Arena& arena, const Value& slice);
Value ResourceSliceFromHub(base::Arena& arena, const Value& slice);

}  // namespace keelson::registry
