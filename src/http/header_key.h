// Header names that end in a key of the user's: X-Remote-Extra-<key>, Impersonate-Extra-<key>. Pure.
#pragma once

#include <string>
#include <string_view>

namespace keelson::http {

// client-go's headerKeyEscape: bytes that a header name cannot hold, and %, are percent-encoded.
std::string EscapeHeaderKey(std::string_view key);

}  // namespace keelson::http
