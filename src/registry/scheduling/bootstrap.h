// The two priority classes every server has (post-start hook scheduling/bootstrap-system-priority-classes).
#pragma once

#include <vector>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::registry {
std::vector<Value> BootstrapPriorityClasses(base::Arena& arena);
}
