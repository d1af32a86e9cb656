// Names that cannot stand in a path, met when a plugin looks something up by them. Internal to admission.
#pragma once

#include <string>
#include <string_view>

namespace keelson::admission {

// What upstream's client says about such a name; "" for a name that is fine.
std::string PathSegmentError(std::string_view name);

}  // namespace keelson::admission
