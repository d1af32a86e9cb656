// Names made for metadata.generateName.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"

namespace keelson::registry {

// `base` cut to 58 bytes and five random characters.
std::string GenerateName(std::string_view base, base::Random& random);

}  // namespace keelson::registry
