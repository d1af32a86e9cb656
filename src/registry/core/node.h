// Nodes, and the rows of component statuses.
#pragma once

#include "registry/strategy.h"

namespace keelson::registry::core {

void DefaultNode(base::Arena& arena, Value node);
void PrepareNode(const Call& call, Value node, Value old);
void PrepareNodeForStatusUpdate(const Call& call, Value node, Value old);
void ValidateNode(const Call& call, Value node, Value old, FieldErrors& errors);
void ValidateNodeUpdate(const Call& call, Value node, Value old, FieldErrors& errors);
void ValidateNodeStatusUpdate(const Call& call, Value node, Value old, FieldErrors& errors);
void WarnNode(const Call& call, Value node, Value old);
void NodeRow(base::Arena& arena, const base::Clock& clock, Value node, Value cells);

void ComponentStatusRow(base::Arena& arena, const base::Clock& clock, Value object, Value cells);

}  // namespace keelson::registry::core
