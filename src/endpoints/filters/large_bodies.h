// Requests with large bodies leave the I/O threads: decoding, patching and validating three megabytes would delay all
// other connections of that thread. The body is read on the connection's thread, the rest of the request
// runs on a pool, and the response goes back.
#pragma once

#include <cstddef>

#include "async/io_pool.h"
#include "endpoints/exchange.h"

namespace keelson::endpoints::filters {

constexpr std::size_t kLargeBodyBytes = 128 * 1024;

// `pool` must outlive the handlers that run on it.
Handler WithLargeBodiesElsewhere(Handler next, async::IOPool& pool);

}  // namespace keelson::endpoints::filters
