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

// In a log the hint comes first: users look for the reason in the last line.
void TellFailure(const Error& error, Dialect dialect) {
  const std::string& hint = error.hint();
  if (!hint.empty() && dialect == Dialect::kLog) log::Info("Hint", "text", hint);
  TellProblems({error.message()}, dialect);
  if (!hint.empty() && dialect == Dialect::kTerminal) std::fprintf(stderr, "  %s\n", hint.c_str());
}

}  // namespace keelson::app
