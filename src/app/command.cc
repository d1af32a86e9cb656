#include "app/command.h"

#include <ostream>

#include "app/effective_version.h"
#include "app/file_flags.h"
#include "app/version.h"
#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

constexpr std::string_view kDescription =
    "The Kubernetes API server: it validates and stores the objects of a cluster and serves\n"
    "them to every other component. Without flags it serves https://127.0.0.1:6443 from a\n"
    "store of its own in --data-dir, with certificates it makes itself; with --etcd-servers\n"
    "it takes kube-apiserver's place in a cluster.\n";

int Fail(const CommandEnvironment& environment, std::string_view message) {
  environment.err << "Error: " << message << "\n";
  return 1;
}

// Errors after the log is there, as upstream writes them.
int FailLogged(const CommandEnvironment& environment, const Strings& problems) {
  TellProblems(problems, environment.dialect);
  return 1;
}

log::Options LogOptions(const LoggingOptions& o) {
  log::Options options;
  const bool json = o.format == "json";
  options.format = json ? log::Format::kJSON : log::Format::kText;
  options.verbosity = static_cast<int>(o.verbosity);
  options.vmodule = o.vmodule;
  options.split_stream = json ? o.json_split_stream : o.text_split_stream;
  options.info_buffer_size = json ? o.json_info_buffer_size : o.text_info_buffer_size;
  options.flush_frequency = o.flush_frequency;
  return options;
}

std::string QuotedList(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) quoted.push_back(base::GoQuote(item));
  return "[" + base::Join(quoted, " ") + "]";
}

void PrintVersion(const ServerRunOptions& options, const CommandEnvironment& environment) {
  const VersionInfo info = GetVersionInfo();
  if (options.version == "raw") {
    environment.out << RawVersionText(info) << "\n";
  } else {
    environment.out << "Kubernetes " << info.git_version << "\n";
    if (environment.program != "kube-apiserver") environment.out << OwnVersionText(info);
  }
}

// Every problem of a start at once. Files first: upstream's words of them name no flag. On a terminal they stop the
// start here; in a log the start goes on and fails with upstream's line too. False when the start is over.
bool TellStart(const Strings& errors, const Strings& unbuilt, const Strings& files,
               const CommandEnvironment& environment) {
  const bool terminal = environment.dialect == Dialect::kTerminal;
  if (terminal) {
    TellProblems(files, Dialect::kTerminal);
  } else {
    for (const std::string& line : files) log::Error("Flag is not usable", "err", line);
  }
  TellProblems(errors, environment.dialect);
  // After those, so that a command line that upstream refuses gets upstream's words.
  for (const std::string& line : unbuilt) environment.err << "Error: " << line << "\n";
  return errors.empty() && unbuilt.empty() && !(terminal && !files.empty());
}

}  // namespace

std::variant<CompletedOptions, int> PrepareCommand(const std::vector<std::string>& arguments,
                                                   const CommandEnvironment& environment) {
  ServerRunOptions options;
  FlagSet flags = MakeFlags(options);
  auto parsed = flags.Parse(arguments);
  if (!parsed.ok()) return Fail(environment, parsed.error());
  for (const std::string& warning : parsed->warnings) environment.err << warning << "\n";
  if (options.help) {
    environment.out << kDescription << "\nUsage:\n  " << environment.program << " [flags]\n";
    if (!environment.commands.empty())
      environment.out << "  " << environment.program << " COMMAND [--help]\n\n" << environment.commands;
    environment.out << flags.Usage(environment.columns);
    return 0;
  }
  for (const std::string& argument : parsed->positional) {
    if (argument.empty()) continue;
    const bool boolean = argument == "true" || argument == "false";
    return Fail(environment, base::GoQuote(environment.program) + " does not take any arguments, got " +
                                 QuotedList(parsed->positional) +
                                 (boolean ? "\n  a boolean flag takes its value after '=': --flag=" + argument : ""));
  }
  if (options.version.starts_with('v')) {
    const std::string problem = CheckVersionOverride(options.version);
    if (!problem.empty())
      return Fail(environment,
                  "invalid argument " + base::GoQuote(options.version) + " for \"--version\" flag: " + problem);
  }

  const auto versions =
      EffectiveVersion::FromFlags(options.generic.emulated_version, options.generic.min_compatibility_version);
  if (!versions.ok()) return FailLogged(environment, {versions.error()});
  FeatureGates features;
  auto set = features.Set(options.generic.feature_gates);
  if (!set.ok()) return FailLogged(environment, {set.error()});
  if (options.version == "true" || options.version == "raw") {
    PrintVersion(options, environment);
    return 0;
  }
  const Strings logging_errors = ValidateLogging(options.logs, features);
  if (!logging_errors.empty()) return FailLogged(environment, logging_errors);
  log::Configure(LogOptions(options.logs));
  for (const Flag& flag : flags.flags()) {
    log::V(1).Text("FLAG: --" + std::string(flag.name) + "=" + base::GoQuote(flag.value->String()));
  }
  for (const std::string& warning : set->warnings) log::Text(log::Severity::kWarning, warning);

  Strings unbuilt = versions->Validate().empty() ? versions->Unbuilt() : Strings();
  for (std::string& flag : UnbuiltFlags(flags)) unbuilt.push_back(std::move(flag));
  unbuilt.insert(unbuilt.end(), set->unbuilt.begin(), set->unbuilt.end());
  const Strings files = FileFlagProblems(options);
  auto completed = Complete(std::move(options), flags, std::move(features), environment.host);
  if (completed.ok()) {
    std::string& controllers = completed->options.keelson.embedded_controllers;
    if (controllers == "auto")
      controllers = completed->embedded && environment.program != "kube-apiserver" ? "on" : "off";
    for (const std::string& warning : completed->warnings) log::Text(log::Severity::kWarning, warning);
  }
  const Strings errors = completed.ok() ? Validate(*completed) : Strings{completed.error().message()};
  if (!TellStart(errors, unbuilt, files, environment)) return 1;
  return *std::move(completed);
}

}  // namespace keelson::app
