// One request on its way through the handler chain: the HTTP message and what has been found out about it.
#pragma once

#include <functional>
#include <memory>

#include "async/awaitable.h"
#include "base/url.h"
#include "endpoints/request_trace.h"
#include "endpoints/watch_group.h"
#include "http/message.h"
#include "request/context.h"

namespace keelson::endpoints {

class RequestMetrics;  // endpoints/request_metrics.h

struct Exchange {
  http::Request http;
  request::Context context;
  base::Query query;
  RequestTrace trace;
  RequestMetrics* metrics = nullptr;    // outlives every request; may be null
  std::shared_ptr<WatchGroup> watches;  // which a watch joins; may be null
  bool allow_gzip = true;               // large answers may be compressed
  bool allow_cbor = false;              // errors may be told in CBOR: set where the request has met its resource
};

// Shared: a handler that ran into its deadline goes on without anybody waiting for it.
using ExchangePtr = std::shared_ptr<Exchange>;
using Handler = std::function<Awaitable<http::Response>(ExchangePtr)>;

}  // namespace keelson::endpoints
