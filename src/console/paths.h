// Paths of the console. Pages and the exchange of links are for everybody; everything below kAPIPrefix is authorized as
// the non-resource URL that it is; kNamespacesPath is for everybody who is signed in.
#pragma once

#include <string_view>

namespace keelson::console {

inline constexpr std::string_view kRoot = "/console", kPrefix = "/console/";
inline constexpr std::string_view kSessionPrefix = "/console/session/";
inline constexpr std::string_view kAPIPrefix = "/console/api/";  // long-running: request/request_info.cc
inline constexpr std::string_view kNamespacesPath = "/console/api/namespaces";

}  // namespace keelson::console
