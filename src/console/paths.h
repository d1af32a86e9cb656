// Paths of the console. Pages and the exchange of links are for everybody; everything below kAPIPrefix is authorized as
// the non-resource URL that it is.
#pragma once

#include <string_view>

namespace keelson::console {

inline constexpr std::string_view kRoot = "/console", kPrefix = "/console/";
inline constexpr std::string_view kSessionPrefix = "/console/session/";
inline constexpr std::string_view kAPIPrefix = "/console/api/";  // long-running: request/request_info.cc

}  // namespace keelson::console
