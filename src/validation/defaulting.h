// Defaults from the tables (`default=` of a .kapi field), set if a field is absent. Defaults that depend on other
// fields are in the kind's own function.
#pragma once

#include "base/arena.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::validation {

void ApplyTableDefaults(base::Arena& arena, const schema::Struct& type, Value object);

}  // namespace keelson::validation
