// Runs the server that the completed options describe, until it is told to end.
#pragma once

#include "app/completed_options.h"
#include "app/error.h"
#include "app/signals.h"
#include "base/outcome.h"

namespace keelson::app {

// Serves until `signals` has the first one, drains, and returns. The error is one line for the user.
Outcome<void, Error> Run(CompletedOptions completed, Signals& signals);

}  // namespace keelson::app
