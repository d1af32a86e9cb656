// Validation of status.conditions for both kinds of the group.
#pragma once

#include "registry/strategy.h"

namespace keelson::registry {

void ValidateFlowControlConditions(const Value& object, FieldErrors& errors);  // types are there and differ
void ValidateFlowControlStatusUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void RestoreFlowControlMetadata(const Call& call, Value object, Value old);  // all but managedFields

}  // namespace keelson::registry
