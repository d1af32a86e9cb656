// Flags that name files, looked at together before the server starts, so that every wrong one is reported at once and
// by its own name. Upstream reports the first file that fails, without the flag.
#pragma once

#include "app/options.h"

namespace keelson::app {

// "--client-ca-file: open /x: no such file or directory", one line per flag and file, in the order of --help. A pair of
// which one half is missing is a line too.
Strings FileFlagProblems(const ServerRunOptions& options);

}  // namespace keelson::app
