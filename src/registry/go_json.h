// Errors of Go's json.Unmarshal for a JSON text in a field or an annotation.
#pragma once

#include <string>
#include <string_view>

namespace keelson::registry {

// The error of unmarshalling into map[string]interface{}; "" when there is none.
std::string GoUnmarshalMapError(std::string_view json);

}  // namespace keelson::registry
