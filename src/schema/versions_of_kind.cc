#include "schema/versions_of_kind.h"

#include <algorithm>
#include <tuple>

#include "schema/schema.h"

namespace keelson::schema {
namespace {

std::tuple<int, int, int> Rank(std::string_view version) {
  const auto number = [&version] {
    int read = 0;
    for (; !version.empty() && version.front() >= '0' && version.front() <= '9'; version.remove_prefix(1))
      read = read * 10 + (version.front() - '0');
    return read;
  };
  if (version.starts_with('v')) version.remove_prefix(1);
  const int major = number();
  const int stage = version.starts_with("alpha") ? 2 : version.starts_with("beta") ? 1 : 0;
  version.remove_prefix(std::min(version.size(), version.find_first_of("0123456789")));
  return {stage, -major, -number()};
}

}  // namespace

std::vector<std::string_view> VersionsOfKind(std::string_view group, std::string_view kind) {
  std::vector<std::string_view> versions;
  for (const Package* package : Packages()) {
    if (package->serves && package->group == group && FindKind(group, package->version, kind) != nullptr)
      versions.push_back(package->version);
  }
  std::ranges::sort(versions, {}, Rank);
  return versions;
}

}  // namespace keelson::schema
