#include "app/commands/doctor.h"

#include <algorithm>
#include <cstdio>

#include "app/commands/doctor_checks.h"
#include "app/file_flags.h"
#include "app/files.h"
#include "app/host_facts.h"
#include "app/options.h"

namespace keelson::app {

const char* const kDoctorUsage =
    "usage: keelson doctor [flags of the server]\n"
    "Looks at flags, data folder, certificates, disk, clock, port, limits, store and etcd as a start with these flags\n"
    "would find them; changes nothing. Exit code 1 when something is broken. With the flags of the service:\n"
    "  keelson doctor --data-dir=/var/lib/keelson";

std::size_t Findings::Count(Severity severity) const {
  return static_cast<std::size_t>(std::ranges::count(all_, severity, &Finding::severity));
}

std::string Report(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings.all()) {
    const char* const mark = finding.severity == Severity::kOK        ? "ok    "
                             : finding.severity == Severity::kWarning ? "warn  "
                                                                      : "FAIL  ";
    text += mark + finding.area + ": " + finding.text + "\n";
    if (!finding.advice.empty()) text += "      -> " + finding.advice + "\n";
  }
  text += std::to_string(findings.Count(Severity::kOK)) + " ok, " + std::to_string(findings.Count(Severity::kWarning)) +
          " to look at, " + std::to_string(findings.Count(Severity::kFailure)) + " broken\n";
  return text;
}

namespace {

// Flags as the server takes them; nothing when they cannot even be read.
std::optional<CompletedOptions> CheckFlags(const std::vector<std::string>& arguments, Findings& findings) {
  ServerRunOptions options;
  FlagSet flags = MakeFlags(options);
  const auto parsed = flags.Parse(arguments);
  if (!parsed.ok()) {
    findings.Fail("flags", parsed.error(), "see keelson --help");
    return std::nullopt;
  }
  const std::size_t before = findings.all().size();
  for (const std::string& warning : parsed->warnings)
    findings.Warn("flags", warning, "upstream will remove it: leave it out");
  for (const std::string& line : FileFlagProblems(options))
    findings.Fail("flags", line, "name a file that can be read");
  FeatureGates features;
  auto set = features.Set(options.generic.feature_gates);
  if (!set.ok()) {
    findings.Fail("flags", set.error(), "correct --feature-gates");
    return std::nullopt;
  }
  for (const std::string& warning : set->warnings) findings.Warn("flags", warning, "leave the gate out");
  Strings unbuilt = UnbuiltFlags(flags);
  unbuilt.insert(unbuilt.end(), set->unbuilt.begin(), set->unbuilt.end());
  for (const std::string& line : unbuilt) findings.Fail("flags", line, "leave it out");
  auto completed = Complete(std::move(options), flags, std::move(features), ReadHostFacts());
  if (!completed.ok()) {
    findings.Fail("flags", completed.error().message(), "correct it");
    return std::nullopt;
  }
  for (const std::string& warning : completed->warnings) findings.Warn("flags", warning, "see docs/flags.md");
  for (const std::string& error : Validate(*completed)) findings.Fail("flags", error, "correct it");
  if (findings.all().size() == before) findings.OK("flags", "all taken");
  return *std::move(completed);
}

void CheckEmbedded(const CompletedOptions& completed, base::Clock::SystemTime now, Findings& findings) {
  const std::string& folder = completed.options.keelson.data_dir;
  if (folder == ":memory:") return;
  CheckFolder(folder, findings);
  CheckKeys(folder + "/pki", findings);
  CheckDisk(folder, findings);
  CheckClock(folder, now, findings);
  CheckStore(folder, findings);
}

}  // namespace

int RunDoctor(const std::vector<std::string>& arguments) {
  Findings findings;
  const auto completed = CheckFlags(arguments, findings);
  if (completed) {
    const auto now = base::Clock::Real().Now();
    if (completed->embedded) CheckEmbedded(*completed, now, findings);
    for (const CertificatePair& pair : CertificatesOf(*completed)) CheckCertificate(pair, now, findings);
    CheckPort(completed->options.secure_serving,
              completed->embedded ? ProcessOf(completed->options.keelson.data_dir) : 0, findings);
    CheckLimits(findings);
    if (!completed->embedded) CheckEtcd(completed->options, findings);
  }
  std::fputs(Report(findings).c_str(), stdout);
  return findings.Count(Severity::kFailure) > 0 ? 1 : 0;
}

}  // namespace keelson::app
