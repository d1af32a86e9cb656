// `keelson console`: a link to the console of the server that runs on a data folder.
#pragma once

#include <string>
#include <vector>

namespace keelson::app {

extern const char* const kConsoleUsage;
int RunConsole(const std::vector<std::string>& arguments);

}  // namespace keelson::app
