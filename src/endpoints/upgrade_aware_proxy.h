// Proxies a request to a backend: its response is streamed back, or an upgrade becomes a tunnel of bytes (upstream's
// UpgradeAwareHandler).
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "endpoints/exchange.h"
#include "http/message.h"
#include "meta/status.h"
#include "proxy/transport.h"

namespace keelson::endpoints {

struct ProxyOptions {
  proxy::Location location;
  std::shared_ptr<proxy::Transport> transport;
  bool wrap_transport = false;    // X-Forwarded-* headers; links and redirects rewritten to stay within the proxy
  bool upgrade_required = false;  // anything else is refused
  // An aggregated API server: the location has its own query, Host is the backend's, links become absolute with the
  // backend's address, failures are 503 in plain text.
  bool aggregated = false;
  bool reject_redirects = false;  // CVE-2022-3172: a redirect of the backend is 502
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::int64_t bytes_per_second = 0;  // of a tunnel, each way; 0: no limit
};

Awaitable<http::Response> ServeUpgradeAware(ProxyOptions options, ExchangePtr exchange);

// WebSockets that carry SPDY (port forwarding from browsers and kubectl): SPDY to the backend, its bytes as messages to
// the client.
bool IsTunnelingRequest(const http::Request& request);
Awaitable<http::Response> ServeTunnel(ProxyOptions options, ExchangePtr exchange);

// Whether the request has a Connection: Upgrade header.
bool IsUpgradeRequest(const http::Request& request);
// Go's text for a request that got no answer: `Get "https://h/p": dial tcp ...`.
std::string RequestError(std::string_view method, const proxy::Location& location, const http::ClientError& error);

}  // namespace keelson::endpoints
