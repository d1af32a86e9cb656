// Values in the words of Go's fmt and encoding/json: some error texts show them.
#pragma once

#include <string>
#include <string_view>

#include "object/value.h"

namespace keelson::patch {

std::string GoSprint(const Value& value);  // %v: map[a:1 b:[x y]], keys sorted
std::string_view GoTypeName(
    const Value& value);  // map[string]interface {}, []interface {}, string, int64, float64, bool
std::string_view JSONTypeName(
    const Value& value);  // as json.UnmarshalTypeError names it: object, array, string, number, bool

}  // namespace keelson::patch
