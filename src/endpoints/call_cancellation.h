// Cancellation of outgoing calls (webhooks) when the request they are made for is cancelled.
#pragma once

#include "endpoints/exchange.h"

namespace keelson::endpoints {

// The request's own cancellation; for a watch, which otherwise needs none, one that is set when the client goes.
inline async::CancellationPtr CancellationOf(const Exchange& exchange) {
  if (exchange.context.cancellation || !exchange.http.on_close) return exchange.context.cancellation;
  auto cancellation = async::Cancellation::New();
  exchange.http.on_close([cancellation] { cancellation->Cancel(); });
  return cancellation;
}

}  // namespace keelson::endpoints
