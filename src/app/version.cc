#include "app/version.h"

#include <utility>

#include "base/strings.h"

// Set by the build: the commit, and its date (the same commit gives the same bytes).
#ifndef KEELSON_GIT_COMMIT
#define KEELSON_GIT_COMMIT ""
#endif
#ifndef KEELSON_BUILD_DATE
#define KEELSON_BUILD_DATE "1970-01-01T00:00:00Z"
#endif

namespace keelson::app {
namespace {

#if defined(__x86_64__)
constexpr std::string_view kPlatform = "linux/amd64";
#elif defined(__aarch64__)
constexpr std::string_view kPlatform = "linux/arm64";
#else
constexpr std::string_view kPlatform = "linux/unknown";
#endif

}  // namespace

VersionInfo GetVersionInfo(std::string_view git_version) {
  VersionInfo info;
  info.major = "1";
  info.minor = "36";
  info.emulation_major = "1";
  info.emulation_minor = "36";
  info.min_compatibility_major = "1";
  info.min_compatibility_minor = "35";
  info.git_version = git_version;
  info.git_commit = KEELSON_GIT_COMMIT;
  info.build_date = KEELSON_BUILD_DATE;
  info.go_version = "none";
  info.compiler = "clang";
  info.platform = kPlatform;
  return info;
}

std::string VersionDocument(const VersionInfo& info) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"major", info.major},
      {"minor", info.minor},
      {"emulationMajor", info.emulation_major},
      {"emulationMinor", info.emulation_minor},
      {"minCompatibilityMajor", info.min_compatibility_major},
      {"minCompatibilityMinor", info.min_compatibility_minor},
      {"gitVersion", info.git_version},
      {"gitCommit", info.git_commit},
      {"gitTreeState", info.git_tree_state},
      {"buildDate", info.build_date},
      {"goVersion", info.go_version},
      {"compiler", info.compiler},
      {"platform", info.platform},
  };
  std::string out = "{";
  for (const auto& [key, value] : rows) {
    out += out.size() == 1 ? "\n" : ",\n";
    out += "  \"" + std::string(key) + "\": \"" + std::string(value) + "\"";
  }
  return out + "\n}";
}

std::string OwnVersionText(const VersionInfo& info) {
  return "keelson " + std::string(kKeelsonVersion) + "\n" +
         (info.git_commit.empty() ? "" : "commit " + info.git_commit + "\n") + "built " + info.build_date + " with " +
         info.compiler + " for " + info.platform + "\n";
}

std::string RawVersionText(const VersionInfo& info) {
  auto field = [](std::string_view name, const std::string& value) {
    return std::string(name) + ":" + base::GoQuote(value);
  };
  return "version.Info{" + field("Major", info.major) + ", " + field("Minor", info.minor) +
         ", EmulationMajor:\"\", EmulationMinor:\"\", " + "MinCompatibilityMajor:\"\", MinCompatibilityMinor:\"\", " +
         field("GitVersion", info.git_version) + ", " + field("GitCommit", info.git_commit) + ", " +
         field("GitTreeState", info.git_tree_state) + ", " + field("BuildDate", info.build_date) + ", " +
         field("GoVersion", info.go_version) + ", " + field("Compiler", info.compiler) + ", " +
         field("Platform", info.platform) + "}";
}

std::string CheckVersionOverride(std::string_view text) {
  const std::string_view core =
      text.substr(1, text.find_first_of("-+") == std::string_view::npos ? text.npos : text.find_first_of("-+") - 1);
  const auto pieces = base::Split(core, '.');
  for (const std::string_view piece : pieces) {
    if (!base::ParseUint64(piece)) return "could not parse " + base::GoQuote(text) + " as version";
  }
  if (pieces.size() != 3) return "illegal version string " + base::GoQuote(text);
  if (core != kGitVersion.substr(1)) {
    return "version " + base::GoQuote(text) + " must match major/minor/patch of default version " +
           base::GoQuote(kGitVersion);
  }
  return "";
}

}  // namespace keelson::app
