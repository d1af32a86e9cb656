// keelson, also when it is called kube-apiserver.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/failure.h"
#include "app/hardening.h"
#include "app/run.h"
#include "app/signals.h"
#include "app/subcommands.h"
#include "base/failpoint.h"
#include "base/parent.h"
#include "telemetry/log.h"

int main(int argc, char** argv) {
  using namespace keelson;
  app::KeepFilesPrivate();
  const std::string program = std::filesystem::path(argv[0]).filename();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (const auto code = app::RunSubcommand(program, arguments))
    return std::fflush(stdout) == 0 && std::ferror(stdout) == 0 ? *code : 1;
  app::Signals signals;  // before any thread
  base::Failpoints::ArmFromEnvironment();
  winsize terminal{};
  if (isatty(STDOUT_FILENO) != 0) ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal);
  const app::CommandEnvironment environment{.program = program,
                                            .host = app::ReadHostFacts(),
                                            .out = std::cout,
                                            .err = std::cerr,
                                            .commands = app::SubcommandUsage(program),
                                            .columns = terminal.ws_col,
                                            .dialect = app::FailureDialect()};
  auto prepared = app::PrepareCommand(arguments, environment);
  if (const int* code = std::get_if<int>(&prepared)) return std::cout.flush() ? *code : 1;
  const bool dumps = std::get<app::CompletedOptions>(prepared).options.keelson.allow_core_dumps;
  if (!dumps) app::ForbidCoreDumps();
  if (std::get<app::CompletedOptions>(prepared).options.keelson.exit_with_parent) base::EndWithParent();
  const log::Writer writer;
  auto ran = app::Run(std::get<app::CompletedOptions>(std::move(prepared)), signals);
  if (ran.ok()) return 0;
  if (signals.WaitFor(std::chrono::milliseconds(0))) {
    log::Info("Ended by a signal before it was ready", "while", ran.error());
    return 0;
  }
  app::TellFailure(ran.error(), environment.dialect);
  return 1;
}
