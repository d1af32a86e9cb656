// A socket in the data folder through which commands on the same machine reach the running server: `keelson backup
// save` gets a snapshot of the store without any flag or credential. Access control is the folder's mode 0700: only the
// server's user and root can connect.
//   -> "snapshot\n"    <- "ok\n", then the bytes of kv/snapshot      or "error: text\n"
//   -> "console\n"     <- "ok\n", then a one-time link and a newline or "error: text\n"
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/error.h"
#include "base/outcome.h"
#include "kv/kv.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::app {

// Makes a link that signs its opener in to the console once. Empty: there are none.
using NewConsoleLink = std::function<std::string()>;

// Serves one client at a time on its own thread, until it is destroyed; a snapshot in progress then ends early.
class ControlSocket {
 public:
  // `store` must outlive it. A socket left over by a crash is replaced: the caller has the folder's lock.
  static Outcome<std::unique_ptr<ControlSocket>, Error> Listen(const std::string& data_folder, kv::Store& store,
                                                               NewConsoleLink new_link = nullptr);
  ~ControlSocket();

 private:
  struct Impl;
  explicit ControlSocket(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Requests a snapshot from the server that runs on the folder and writes it to `path`. Nothing when no server runs
// there. `progress` is called with the bytes so far. Blocks.
std::optional<Outcome<kv::snapshot::Info, Error>> SnapshotOfRunning(
    const std::string& data_folder, const std::string& path, const std::function<void(std::uint64_t bytes)>& progress);

// Requests a console link from the server that runs on the folder. Nothing when no server runs there. Blocks.
std::optional<Outcome<std::string, Error>> ConsoleLinkOfRunning(const std::string& data_folder);

}  // namespace keelson::app
