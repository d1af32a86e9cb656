// The value of Date headers: made once a second per thread.
#pragma once

#include <string_view>

namespace keelson::http {
std::string_view CurrentDate();  // "Mon, 02 Jan 2006 15:04:05 GMT"; valid until the next call on this thread
}
