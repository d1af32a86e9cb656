// How requests reach backends (kubelets, pods, services): http::Transport with URLs.
// Thread safety: all members from any thread. Ownership: the pool must outlive it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "async/io_pool.h"
#include "http/transport.h"

namespace keelson::proxy {

// Destination of a request: a URL in its parts. `path` is decoded.
struct Location {
  std::string scheme = "http";
  std::string host;  // without brackets
  std::string port;  // "" is the scheme's
  std::string path;
  std::string raw_query;

  std::string Authority() const;  // host[:port], an IPv6 address in brackets
  std::string Target() const;     // the escaped path and the query
  std::string URL() const;        // as Go's URL.String()
};

struct TransportOptions {
  // Called when a connection is made, so that renewed certificates are used. Null results are errors of the TLS set-up.
  std::function<std::shared_ptr<net::TLSClientContext>()> tls;
  std::chrono::milliseconds dial_timeout{30'000};
  // Checks every address before it is dialled, also when a host name resolves to another one than before
  // (CVE-2020-8562). Empty: all are allowed. Connections are pooled per transport: an unchecked connection is never
  // reused by a transport with a check.
  std::function<bool(const std::string& address)> allow;
  net::DialerPtr dialer;    // null: net::Dial
  std::string server_name;  // in the backends' certificates; empty: the location's host
  // Tests only: dials another address than the location's.
  std::function<net::DialTarget(const std::string& host, std::uint16_t port)> dial;
};

class Transport {
 public:
  Transport(async::IOPool& pool, TransportOptions options) : transport_(pool), options_(std::move(options)) {}

  // The request's target is taken from the location.
  Awaitable<Outcome<http::ClientResponse, http::ClientError>> Do(Location location, http::ClientRequest request);

 private:
  http::Transport transport_;
  TransportOptions options_;
};

}  // namespace keelson::proxy
