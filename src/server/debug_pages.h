// Pages of --profiling below /debug: a CPU profile in pprof's format, the threads, allocator statistics, and the log's
// verbosity. Profiles that exist only in Go programs are answered as unknown.
#pragma once

#include "server/path_mux.h"

namespace keelson::server {

void InstallDebugPages(PathMux& mux);

}  // namespace keelson::server
