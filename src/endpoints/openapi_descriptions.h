// The texts of api/descriptions.txt: what a type or a field is, for people. Not for other folders.
#pragma once

#include <string_view>

namespace keelson::endpoints {

// Of a type where `field` is "". Empty where nothing is said. The text lives for ever.
std::string_view FindDescription(std::string_view package, std::string_view type, std::string_view field);

}  // namespace keelson::endpoints
