// The groups that src/registry/CMakeLists.txt lists.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {

using StrategiesOfGroup = std::span<const Strategy> (*)();
std::span<const StrategiesOfGroup> RegisteredGroups();

}  // namespace keelson::registry
