// --memory-limit: the budget of memory that requests share.
#pragma once

#include <cstdint>
#include <memory>

#include "flowcontrol/memory_budget.h"

namespace keelson::app {

// Null without a limit. Memory in use is the resident set of the process.
std::shared_ptr<flowcontrol::MemoryBudget> MakeMemoryBudget(std::int64_t limit_mb);

}  // namespace keelson::app
