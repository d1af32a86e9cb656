#include "http/header_key.h"

#include "base/url.h"

namespace keelson::http {

std::string EscapeHeaderKey(std::string_view key) { return base::PercentEncode(key, "!#$&'*+^`|"); }

}  // namespace keelson::http
