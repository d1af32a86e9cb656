// string.format of the extended string library (version 2): verbs s d f e b x X o, with the reference's error texts and
// its en-US number forms.
#pragma once

#include <string>
#include <string_view>

#include "base/outcome.h"
#include "cel/value.h"

namespace keelson::cel {

inline constexpr int kFormatPrecisionMax = 1'000'000;  // larger ones are refused, as Go's fmt refuses them

Outcome<std::string, std::string> FormatString(Arena& arena, std::string_view format, const List& args);

}  // namespace keelson::cel
