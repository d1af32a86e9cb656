// Container image references, as far as defaulting reads them.
#pragma once

#include <string_view>

namespace keelson::registry::core {

// Whether the reference pulls "latest": by its tag, or without tag and digest. False for text that is not a
// reference.
bool PullsLatest(std::string_view image);

}  // namespace keelson::registry::core
