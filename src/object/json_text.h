// Values as JSON text exactly as Go's encoding/json writes them: for messages, managedFields and annotations.
// (Objects on their way to a client or to storage go through codec, which uses the schema.)
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "object/value.h"

namespace keelson::object {

// Quoted, with Go's escapes: <, >, & and U+2028/9 as \u00XX, invalid UTF-8 as \ufffd.
void AppendJSONString(std::string& out, std::string_view text);
// A float64 as encoding/json writes it: shortest digits, exponents below 1e-6 and from 1e21 on.
void AppendJSONDouble(std::string& out, double value);
// A float64 as fmt's %v writes it: exponents below 1e-4 and from 1e6 on, two exponent digits at least.
std::string GoDouble(double value);
// Compact, members in their order; a Raw parts without white space.
void AppendJSON(std::string& out, const Value& value);
std::string ToJSON(const Value& value);

// A JSON text as a tree, for the small texts that live inside objects (keys of managedFields, Raw values, annotations).
// Strict grammar; integers that fit stay integers; the last of duplicate keys wins; deeper than kJSONDepthMax is
// refused. Nothing comes back for what is not one JSON value. The result does not refer to `text`.
inline constexpr int kJSONDepthMax = 1000;
std::optional<Value> ParseJSON(Arena& arena, std::string_view text);

}  // namespace keelson::object
