// Dials through an HTTP proxy that understands CONNECT: in plain text, in TLS, or over a Unix socket (HTTPConnect
// egress, HTTPS_PROXY). The tunnel is one end of a socket pair with a relay behind it, so that TLS inside it works as
// on any other connection. Thread safety: Dial() from any coroutine.
#pragma once

#include <memory>
#include <string>

#include "async/io_pool.h"
#include "http/client.h"
#include "net/dialer.h"

namespace keelson::http {

struct ConnectDialerOptions {
  net::DialTarget proxy;
  std::string proxy_name;                      // in errors
  std::shared_ptr<net::TLSClientContext> tls;  // to the proxy; null: plain text
  std::string server_name;                     // in the proxy's certificate; empty: proxy.host
  std::string host_header;                     // empty: the target's address
  std::string authorization;                   // Proxy-Authorization; empty: none
};

class ConnectDialer final : public net::Dialer {
 public:
  ConnectDialer(async::IOPool& pool, ConnectDialerOptions options);  // `pool` must outlive every tunnel
  Awaitable<net::Result<net::StreamSocket>> Dial(net::DialTarget target,
                                                 std::chrono::steady_clock::time_point deadline) override;

 private:
  ConnectDialerOptions options_;
  std::shared_ptr<Client> client_;
};

// The host that a proxy is asked for: the target's own, or, where the target says which addresses are allowed, one that
// was resolved and checked here, so that the checked address is the dialled one.
Awaitable<net::Result<std::string>> AllowedHost(net::DialTarget target, std::chrono::steady_clock::time_point deadline);

// A socket whose other end is `stream`: bytes are carried both ways until one of them ends.
net::Result<net::StreamSocket> RelayToSocket(const asio::any_io_executor& executor, std::unique_ptr<Stream> stream);

// HTTPS_PROXY, HTTP_PROXY and NO_PROXY (and their lower-case forms) as Go's net/http honours them. Loopback targets are
// never proxied; socks5 proxies are not supported.
struct ProxyEnvironment {
  std::string https_proxy;
  std::string http_proxy;
  std::string no_proxy;
  static ProxyEnvironment FromProcess();
};
// The proxy's URL for a target, "" for none.
std::string ProxyFor(const ProxyEnvironment& environment, bool https, const std::string& host, std::uint16_t port);

}  // namespace keelson::http
