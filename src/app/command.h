// The command line as a whole: from arguments to valid options, or to an exit code.
#pragma once

#include <iosfwd>
#include <string>
#include <variant>
#include <vector>

#include "app/completed_options.h"
#include "app/failure.h"
#include "app/host_facts.h"

namespace keelson::app {

struct CommandEnvironment {
  std::string program;  // how it was called: "keelson" or "kube-apiserver"
  HostFacts host;
  std::ostream& out;
  std::ostream& err;
  std::string commands;             // the subcommands, for --help
  std::size_t columns = 0;          // the terminal's width; 0 if the output is not a terminal
  Dialect dialect = Dialect::kLog;  // of failures
};

// Parses, prints help or version, configures the log, logs every flag at V(1), completes and validates. Either options
// that are fit to run, or the exit code of a process that has said why it ends: 0 after help and version, 1 after an
// error.
std::variant<CompletedOptions, int> PrepareCommand(const std::vector<std::string>& arguments,
                                                   const CommandEnvironment& environment);

}  // namespace keelson::app
