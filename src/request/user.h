// Who asks, as the authenticators found out (upstream's user.Info).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace keelson::request {

inline constexpr std::string_view kSystemMasters = "system:masters";
inline constexpr std::string_view kAuthenticated = "system:authenticated";
inline constexpr std::string_view kUnauthenticated = "system:unauthenticated";
inline constexpr std::string_view kAnonymous = "system:anonymous";

struct User {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<std::pair<std::string, std::vector<std::string>>> extra;  // by key

  bool InGroup(std::string_view group) const { return std::ranges::find(groups, group) != groups.end(); }
};

}  // namespace keelson::request
