// What the binary does besides serving: `keelson etcd ...` (also when it is called etcd), and care of an embedded
// store:
//   keelson store check FOLDER            read everything with its checksums
//   keelson store snapshot FOLDER FILE    its contents into a file (the server that has it must be stopped; of a
//   running one, use
//                                         --serve-etcd-api and etcdctl snapshot save)
//   keelson store restore FILE FOLDER     a new store from such a file
//   keelson store defragment FOLDER       give space back to the file system
// FOLDER is the store itself: <data folder>/store. `keelson migrate` is in migrate_command.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace keelson::app {

// The exit code when the arguments name a subcommand; nothing when the server is meant.
std::optional<int> RunSubcommand(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace keelson::app
