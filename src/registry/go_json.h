// What Go's json.Unmarshal says about a text: for rules that look into JSON which a field or an annotation holds.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry {

// The error of unmarshalling into map[string]interface{}; "" when it is valid.
std::string GoUnmarshalMapError(std::string_view json);
// The syntax error of a text; "" when it is one JSON value.
std::string GoSyntaxError(std::string_view json);

}  // namespace keelson::registry
