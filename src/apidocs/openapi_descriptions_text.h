// The files of api/descriptions, one after the other, as they are.
#pragma once

#include <string_view>

namespace keelson::apidocs {

extern const std::string_view kDescriptionsText;

}  // namespace keelson::apidocs
