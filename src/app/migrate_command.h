// keelson migrate --from STORE --to STORE: one store's contents into another, while the first is in use.
// STORE is the folder of an embedded store, or the endpoints of an etcd: http://host:port or https://host:port, several
// with commas. A running server has its folder to itself; it is read through its --serve-etcd-api.
#pragma once

#include <string>
#include <vector>

namespace keelson::app {

extern const char* const kMigrateUsage;

int RunMigrate(const std::vector<std::string>& arguments);  // the exit code

}  // namespace keelson::app
