// Texts inside other texts.
#pragma once

#include <string>
#include <string_view>

namespace keelson::base {

// The inside of a JSON string with no more escapes than JSON asks for; other bytes as they are. (What Go's
// encoding/json would write, which escapes more, is object::AppendJSONString.)
void AppendJSONEscaped(std::string& out, std::string_view text);

// &, < and > as entities.
std::string EscapeHTML(std::string_view text);

}  // namespace keelson::base
