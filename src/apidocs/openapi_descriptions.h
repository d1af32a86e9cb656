// The texts of api/descriptions/*.txt: descriptions of types and fields. Not for other folders.
// The texts are constants of the program: their pages are read from the file at the first OpenAPI request. Only an
// index of the types is in memory.
#pragma once

#include <string_view>

namespace keelson::apidocs {

// The text of a type where `field` is "". Empty where there is none. The text lives for ever.
std::string_view FindDescription(std::string_view package, std::string_view type, std::string_view field);

}  // namespace keelson::apidocs
