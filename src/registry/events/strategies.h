// events.k8s.io: Event. It is the same stored object as the core group's, so the functions work on the core form
// (involvedObject, message, reportingComponent, source, firstTimestamp, ...), and call.request_group says which group's
// rules apply.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {

std::span<const Strategy> EventsStrategies();

// Both groups' rules; the core group stops after the common part. Metadata included where the group checks it.
void ValidateEventCreate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateEventUpdate(const Call& call, Value object, Value old, FieldErrors& errors);

}  // namespace keelson::registry
