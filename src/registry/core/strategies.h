// How the kinds of the core group behave.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry::core {

std::span<const Strategy> CoreStrategies();

}  // namespace keelson::registry::core
