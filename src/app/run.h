// Runs the server that the completed options describe, until it is asked to shut down.
#pragma once

#include <functional>

#include "app/completed_options.h"
#include "app/error.h"
#include "app/signals.h"
#include "base/outcome.h"

namespace keelson::server {
class Serving;
}

namespace keelson::app {

// Serves until the first signal, drains, and returns. The error is one line for the user. `on_ready`: called once the
// server is ready, for callers that send requests from within the process.
Outcome<void, Error> Run(CompletedOptions completed, Signals& signals,
                         const std::function<void(server::Serving&)>& on_ready = nullptr);

}  // namespace keelson::app
