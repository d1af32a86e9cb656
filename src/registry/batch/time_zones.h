// Names of time zones. A table instead of the host's database: what a cluster accepts must not depend on what a machine
// has installed.
#pragma once

#include <string_view>

namespace keelson::registry::batch {

bool IsTimeZone(std::string_view name);

}  // namespace keelson::registry::batch
