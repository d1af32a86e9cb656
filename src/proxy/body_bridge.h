// Carries a body from one connection to another: read on one side, written on the other, with flow control between.
#pragma once

#include <functional>
#include <memory>

#include "http/message.h"

namespace keelson::proxy {

// A source of what `reader` delivers, which is read on `executor`. `first` comes before it. Dropping the source drops
// the reader. A reader that fails aborts the answer. `keep` lives as long as the reader is read from.
std::unique_ptr<http::BodySource> NewBridge(asio::any_io_executor executor, std::unique_ptr<http::BodyReader> reader,
                                            http::SharedBytes first = {}, std::shared_ptr<void> keep = {});

// Copies both ways until one side ends, then closes both. At most `bytes_per_second` each way; 0: no limit.
Awaitable<void> Relay(std::shared_ptr<http::Stream> client, std::shared_ptr<http::Stream> backend,
                      std::int64_t bytes_per_second);

}  // namespace keelson::proxy
