// Resolves plain YAML 1.1 scalars, with the exceptions that Go's yaml.v2 makes. Not for other folders.
#pragma once

#include <string_view>

#include "base/arena.h"
#include "object/value.h"

namespace keelson::codec {

enum class YAMLTag : std::uint8_t { kString, kBool, kInt, kFloat, kNull, kTimestamp };

// The tag of a plain scalar; `out` is its value. Timestamps stay text. A float may be infinite or not a number.
// Integers above int64 become Raw with their digits.
YAMLTag ResolvePlain(base::Arena& arena, std::string_view text, Value& out);
// Whether unquoted text is read as a string.
bool ReadsAsString(std::string_view text);

}  // namespace keelson::codec
