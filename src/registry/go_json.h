// What Go's json.Unmarshal says about a text that a field or an annotation holds.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry {

// The error of unmarshalling into map[string]interface{}; "" when there is none.
std::string GoUnmarshalMapError(std::string_view json);

}  // namespace keelson::registry
