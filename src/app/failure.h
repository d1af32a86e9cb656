// Reporting of a failed start. In a log: upstream's line `"command failed" err="..."`. On a terminal: one plain line
// per problem. Hints are printed beside it in both.
#pragma once

#include <string>
#include <vector>

#include "app/error.h"

namespace keelson::app {

enum class Dialect { kLog, kTerminal };

Dialect FailureDialect();  // kTerminal when stderr is a terminal

// Reports `problems` together: aggregated in a log as upstream does, line by line on a terminal. Nothing for none.
void TellProblems(const std::vector<std::string>& problems, Dialect dialect);
void TellFailure(const Error& error, Dialect dialect);

}  // namespace keelson::app
