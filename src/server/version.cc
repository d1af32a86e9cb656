#include "server/version.h"

#include <utility>

namespace keelson::server {

std::string VersionDocument(std::string_view git_version) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"major", "1"},
      {"minor", "36"},
      {"emulationMajor", "1"},
      {"emulationMinor", "36"},
      {"minCompatibilityMajor", "1"},
      {"minCompatibilityMinor", "35"},
      {"gitVersion", git_version},
      {"gitCommit", ""},
      {"gitTreeState", ""},
      {"buildDate", ""},
      {"goVersion", ""},
      {"compiler", "clang"},
      {"platform", "linux/amd64"},
  };
  std::string out = "{";
  for (const auto& [key, value] : rows) {
    out += out.size() == 1 ? "\n" : ",\n";
    out += "  \"" + std::string(key) + "\": \"" + std::string(value) + "\"";
  }
  return out + "\n}";
}

}  // namespace keelson::server
