// How the kinds of apps behave.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry::apps {

std::span<const Strategy> AppsStrategies();

}  // namespace keelson::registry::apps
