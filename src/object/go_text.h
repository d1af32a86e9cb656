// Values in the words of Go's fmt and encoding/json: some error texts show them.
#pragma once

#include <string>
#include <string_view>

#include "object/value.h"

namespace keelson::object {

// %v: map[a:1 b:[x y]], keys sorted.
std::string GoSprint(const Value& value);
// %T: map[string]interface {}, []interface {}, string, int64, float64, bool.
std::string_view GoTypeName(const Value& value);
// As reflect.Kind names it: map, slice, string, int64, float64, bool. REQUIRES: not null.
std::string_view GoKindName(const Value& value);
// As json.UnmarshalTypeError names it: object, array, string, number, bool.
std::string_view JSONTypeName(const Value& value);

}  // namespace keelson::object
