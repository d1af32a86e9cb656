#include "proxy/transport.h"

#include "base/strings.h"
#include "base/url.h"
#include "net/address.h"

namespace keelson::proxy {
namespace {

std::uint16_t PortOf(const Location& location) {
  if (location.port.empty()) return location.scheme == "https" ? 443 : 80;
  const auto port = base::ParseInt64(location.port);
  return port && *port >= 0 && *port <= 65535 ? static_cast<std::uint16_t>(*port) : 0;
}

}  // namespace

std::string Location::Authority() const {
  const std::string bracketed = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port.empty() ? bracketed : bracketed + ":" + port;
}

std::string Location::Target() const {
  std::string target = base::EscapePath(path);
  if (!target.starts_with('/')) target.insert(0, "/");
  return raw_query.empty() ? target : target + "?" + raw_query;
}

std::string Location::URL() const {
  std::string url = scheme + "://" + Authority() + base::EscapePath(path);
  return raw_query.empty() ? url : url + "?" + raw_query;
}

Awaitable<Outcome<http::ClientResponse, http::ClientError>> Transport::Do(Location location,
                                                                          http::ClientRequest request) {
  const std::uint16_t port = PortOf(location);
  if (port == 0 && !location.port.empty() && location.port != "0") {
    const std::string network = "dial tcp: lookup tcp/" + location.port + ": unknown port";
    co_return http::ClientError{http::ClientError::Kind::kDial, network};
  }
  http::TransportTarget target;
  if (location.scheme == "https") {
    target.tls = options_.tls ? options_.tls() : nullptr;
    if (target.tls == nullptr) {
      co_return http::ClientError{http::ClientError::Kind::kTLS,
                                  "the TLS configuration of this connection is unusable"};
    }
  }
  target.dial = options_.dial ? options_.dial(location.host, port)
                              : net::DialTarget{.host = location.host, .port = port, .allow = options_.allow};
  target.dialer = options_.dialer;
  target.server_name = options_.server_name.empty() ? location.host : options_.server_name;
  target.host_header = location.Authority();
  target.dial_timeout = options_.dial_timeout;
  request.target = location.Target();
  co_return co_await transport_.Do(std::move(target), std::move(request));
}

}  // namespace keelson::proxy
