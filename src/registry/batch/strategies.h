// How the kinds of batch behave.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry::batch {

std::span<const Strategy> BatchStrategies();

}  // namespace keelson::registry::batch
