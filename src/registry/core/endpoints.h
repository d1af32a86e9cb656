// Endpoints, ReplicationController and the core form of Event.
#pragma once

#include "registry/strategy.h"

namespace keelson::registry::core {

void DefaultEndpoints(base::Arena& arena, Value object);
void ValidateEndpoints(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateEndpointsUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnEndpoints(const Call& call, Value object, Value old);
void EndpointsRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void DefaultReplicationController(base::Arena& arena, Value object);
void PrepareReplicationController(const Call& call, Value object, Value old);
void ValidateReplicationController(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateReplicationControllerUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void ValidateReplicationControllerStatusUpdate(const Call& call, Value object, Value old, FieldErrors& errors);
void WarnReplicationController(const Call& call, Value object, Value old);
void ReplicationControllerRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

void EventRow(base::Arena& arena, const base::Clock& clock, Value event, Value cells);

}  // namespace keelson::registry::core
