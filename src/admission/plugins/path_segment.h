// Names that cannot stand in a path, met when a plugin looks something up by them. Internal to admission.
#pragma once

#include <string>
#include <string_view>

namespace keelson::admission {

// Upstream's IsValidPathSegmentName: the error text for an invalid name, "" for a valid one.
std::string PathSegmentError(std::string_view name);

}  // namespace keelson::admission
