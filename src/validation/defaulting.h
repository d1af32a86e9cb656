// Defaults that stand in the tables (`default=` of a .kapi field): put in where a field is absent. What depends on
// other fields is a kind's own function.
#pragma once

#include "base/arena.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::validation {

void ApplyTableDefaults(base::Arena& arena, const schema::Struct& type, Value object);

}  // namespace keelson::validation
