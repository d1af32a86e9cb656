// The document of /version.
#pragma once

#include <string>
#include <string_view>

namespace keelson::server {

std::string VersionDocument(std::string_view git_version);

}  // namespace keelson::server
