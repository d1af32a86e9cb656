// Scalars between their forms: how a Value holds them, and the rules that all decoders share. Not for other folders.
#pragma once

#include <string>
#include <string_view>

#include "base/arena.h"
#include "object/value.h"
#include "schema/schema.h"

namespace keelson::codec {

// The zero value of a type as a list's item or a map's value: "" or 0 or {}; null where Go has nil.
Value ZeroOf(base::Arena& arena, const schema::Type& type);
// True for Go's zero value of a field that is not a pointer: the field is then left out of the Value.
bool IsZero(const schema::Type& type, const Value& value);
// As reflect.Type.String() shows it: v1.PodSpec, []string, map[string]string.
std::string GoTypeName(const schema::Type& type);
std::string GoTypeName(const schema::Struct& type);

// Canonical text of a scalar's text, in the arena where it differs; false with `error` in Go's words.
bool CanonicalTime(base::Arena& arena, std::string_view text, bool micro, Value& out,
                   std::string& error);  // null for the zero time
bool CanonicalDuration(base::Arena& arena, std::string_view text, Value& out, std::string& error);
bool CanonicalQuantity(base::Arena& arena, std::string_view text, Value& out, std::string& error);
bool CanonicalBase64(base::Arena& arena, std::string_view text, Value& out, std::string& error);

// A JSON number's text as untyped JSON has it: int64 without a point where it fits, else double; false when it
// overflows.
bool ParseNumber(std::string_view text, Value& out);
bool ParseDouble(std::string_view text, double& out);

}  // namespace keelson::codec
