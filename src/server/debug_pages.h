// What --profiling serves below /debug: a CPU profile in pprof's format, the threads, the allocator's own account, and
// the log's verbosity. Profiles that only a Go program has are answered as unknown.
#pragma once

#include "server/path_mux.h"

namespace keelson::server {

void InstallDebugPages(PathMux& mux);

}  // namespace keelson::server
