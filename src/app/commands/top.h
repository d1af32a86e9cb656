// `keelson top`: what a server is doing, live in the terminal, from its /metrics.
#pragma once

#include <string>
#include <vector>

namespace keelson::app {

extern const char* const kTopUsage;
int RunTop(const std::vector<std::string>& arguments);

}  // namespace keelson::app
