#include "app/failure.h"

#include <unistd.h>

#include <cstdio>

#include "app/completed_options.h"
#include "telemetry/log.h"

namespace keelson::app {

Dialect FailureDialect() { return isatty(STDERR_FILENO) != 0 ? Dialect::kTerminal : Dialect::kLog; }

void TellProblems(const std::vector<std::string>& problems, Dialect dialect) {
  if (problems.empty()) return;
  if (dialect == Dialect::kLog) {
    log::Error("command failed", "err", AggregateErrors(problems));
    return;
  }
  for (const std::string& problem : problems) std::fprintf(stderr, "Error: %s\n", problem.c_str());
}

void TellFailure(const Error& error, Dialect dialect) {
  TellProblems({error.message()}, dialect);
  if (error.hint().empty()) return;
  if (dialect == Dialect::kLog) {
    log::Info("Hint", "text", error.hint());
  } else {
    std::fprintf(stderr, "  %s\n", error.hint().c_str());
  }
}

}  // namespace keelson::app
