#include "http/http2_memory.h"

#include <cstdlib>

namespace keelson::http {

nghttp2_mem* Http2Memory() { return nullptr; }

}  // namespace keelson::http
