// `keelson backup`: backups of a running or stopped server, with its certificates.
#pragma once

#include <string>
#include <vector>

namespace keelson::app {

extern const char* const kBackupUsage;
int RunBackup(const std::vector<std::string>& arguments);

}  // namespace keelson::app
