// Equality as apimachinery's equality.Semantic has it for typed objects: nil and empty lists and maps are equal,
// quantities compare by value, a pointer that is nil differs from one to a zero value. The schema says which fields are
// pointers.
#pragma once

#include "object/value.h"
#include "schema/schema.h"

namespace keelson::registry {

bool SemanticEqual(Value a, Value b, const schema::Type& type, bool pointer = false);
bool SemanticEqual(Value a, Value b, const schema::Struct& type);
// Equality as by reflect.DeepEqual, for the few kinds whose generation upstream counts by it: nil and empty lists and
// maps differ. Stored objects have no empty ones; a client may send them.
bool DeepEqual(Value a, Value b, const schema::Type& type, bool pointer = false);

}  // namespace keelson::registry
