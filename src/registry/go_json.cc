#include "registry/go_json.h"

#include "base/strings.h"
#include "codec/json.h"

namespace keelson::registry {

std::string GoUnmarshalMapError(std::string_view json) {
  if (std::string error = codec::JSONSyntaxError(json); !error.empty()) return error;
  const std::string_view value = base::Trim(json);
  const char c = value.empty() ? '\0' : value.front();
  if (c == '{' || c == 'n') return {};  // null leaves the map as it is
  const std::string_view kind = c == '[' ? "array" : c == '"' ? "string" : c == 't' || c == 'f' ? "bool" : "number";
  return "json: cannot unmarshal " + std::string(kind) + " into Go value of type map[string]interface {}";
}

}  // namespace keelson::registry
