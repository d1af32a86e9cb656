// The text tables of /debug/api_priority_and_fairness/.
#pragma once

#include <string>

#include "flowcontrol/controller.h"

namespace keelson::flowcontrol {

std::string DumpPriorityLevels(const Controller& controller);
std::string DumpQueues(const Controller& controller);
enum class DumpDetails : std::uint8_t { kNone, kRequest };
std::string DumpRequests(const Controller& controller, DumpDetails details);

}  // namespace keelson::flowcontrol
