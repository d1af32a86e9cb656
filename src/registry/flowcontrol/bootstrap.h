// The flow schemas and priority levels a server keeps by itself: mandatory ones always as they are here, suggested ones
// made when missing and kept up to date while their annotation says so. Objects are built fresh in the arena, with
// apiVersion, kind, metadata and spec.
#pragma once

#include <span>
#include <string_view>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::registry {

struct FlowControlObject {
  std::string_view name;
  bool mandatory;
  Value (*build)(base::Arena& arena, std::string_view name);
};
std::span<const FlowControlObject> BootstrapPriorityLevelConfigurations();  // levels first: schemas refer to them
std::span<const FlowControlObject> BootstrapFlowSchemas();

// The spec of a mandatory object; null when the name is none.
Value MandatoryFlowSchemaSpec(base::Arena& arena, std::string_view name);
Value MandatoryPriorityLevelConfigurationSpec(base::Arena& arena, std::string_view name);

}  // namespace keelson::registry
