// Container image references, as far as defaulting reads them.
#pragma once

#include <string_view>

namespace keelson::registry::core {

// Is "latest" what this reference pulls: tagged so, or neither tagged nor with a digest? False for what is no
// reference.
bool PullsLatest(std::string_view image);

}  // namespace keelson::registry::core
