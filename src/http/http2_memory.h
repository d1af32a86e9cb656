// The allocator given to nghttp2.
#pragma once

#include <nghttp2/nghttp2.h>

namespace keelson::http {
// A session's 16 KiB frame buffer is used up to the size of its largest header block, a page as a rule; taken as fresh
// pages of its own it costs only what was touched. Everything else is malloc.
nghttp2_mem* Http2Memory();
}  // namespace keelson::http
