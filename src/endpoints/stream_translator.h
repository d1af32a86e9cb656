// Remote commands over WebSocket: the client speaks v5.channel.k8s.io, the kubelet SPDY; this translates between them
// (upstream's StreamTranslatorHandler).
#pragma once

#include "endpoints/upgrade_aware_proxy.h"

namespace keelson::endpoints {

// The streams of the remote command that the client requested.
struct StreamOptions {
  bool standard_input = false;
  bool standard_output = false;
  bool standard_error = false;
  bool terminal = false;
};

// Whether a WebSocket client offers the protocol in which streams can be closed one by one.
bool IsStreamCloseRequest(const http::Request& request);
http::Response ServeStreamTranslator(ProxyOptions options, StreamOptions streams, ExchangePtr exchange);

}  // namespace keelson::endpoints
