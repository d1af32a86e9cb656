// Paths of the console. Pages and the exchange of links need no authentication; everything below kAPIPrefix is
// authorized as a non-resource URL; kNamespacesPath and kYAMLPath are for every signed-in user.
#pragma once

#include <string_view>

namespace keelson::console {

inline constexpr std::string_view kRoot = "/console", kPrefix = "/console/";
inline constexpr std::string_view kSessionPrefix = "/console/session/";
inline constexpr std::string_view kAPIPrefix = "/console/api/";  // long-running: request/request_info.cc
inline constexpr std::string_view kNamespacesPath = "/console/api/namespaces", kYAMLPath = "/console/api/yaml";

}  // namespace keelson::console
