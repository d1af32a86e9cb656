// The allocator given to nghttp2.
#pragma once

#include <nghttp2/nghttp2.h>

namespace keelson::http {
// A session's 16 KiB frame buffer is used up to the size of its largest header block, usually a page; mapped as
// separate pages it costs only those touched. Everything else is malloc.
nghttp2_mem* Http2Memory();
}  // namespace keelson::http
