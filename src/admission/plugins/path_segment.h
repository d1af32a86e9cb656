// Names that are invalid as a URL path segment, found when a plugin looks up an object by name. Internal to admission.
#pragma once

#include <string>
#include <string_view>

namespace keelson::admission {

// Upstream's IsValidPathSegmentName: the error text for an invalid name, "" for a valid one.
std::string PathSegmentError(std::string_view name);

}  // namespace keelson::admission
