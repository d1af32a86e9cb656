// Texts inside other texts.
#pragma once

#include <string>
#include <string_view>

namespace keelson::base {

// The content of a JSON string with the minimum of escapes; other bytes as they are. (Go's encoding/json escapes more:
// object::AppendJSONString.)
void AppendJSONEscaped(std::string& out, std::string_view text);

// &, < and > as entities.
std::string EscapeHTML(std::string_view text);

}  // namespace keelson::base
