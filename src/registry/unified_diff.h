// The difference of two texts as a unified diff with three lines of context and no file header: what update errors show
// ("spec is immutable after creation ..."). The matching is Python's difflib (junk heuristic included), because
// go-difflib, which upstream prints with, is a port of it and the choice of matching lines shows.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry {

std::string UnifiedDiff(std::string_view from, std::string_view to);  // "" when they are equal

}  // namespace keelson::registry
