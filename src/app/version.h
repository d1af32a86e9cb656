// The version this server behaves as, and says it is.
#pragma once

#include <string>
#include <string_view>

namespace keelson::app {

// version.Info of /version, by upstream's names. `go_version` and `compiler` name the real compiler.
struct VersionInfo {
  std::string major, minor, emulation_major, emulation_minor, min_compatibility_major, min_compatibility_minor;
  std::string git_version, git_commit, git_tree_state, build_date, go_version, compiler, platform;
};

constexpr std::string_view kKeelsonVersion = "0.2.0";  // of this server; docs/versions.md
constexpr std::string_view kGitVersion = "v1.36.4";    // the version of Kubernetes whose behaviour this is

VersionInfo GetVersionInfo(std::string_view git_version = kGitVersion);
std::string VersionDocument(const VersionInfo& info);  // /version
std::string RawVersionText(const VersionInfo& info);   // --version=raw
std::string OwnVersionText(const VersionInfo& info);   // Keelson's version, commit and build, a line each

// Why --version=`text` (beginning with 'v') cannot be the reported version; "" when it can.
std::string CheckVersionOverride(std::string_view text);

}  // namespace keelson::app
