// flowcontrol.apiserver.k8s.io: FlowSchema, PriorityLevelConfiguration.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {

std::span<const Strategy> FlowcontrolStrategies();

// The parts, one file each.
extern const Strategy kFlowSchemaStrategy;
extern const Strategy kPriorityLevelConfigurationStrategy;

}  // namespace keelson::registry
