// Dials through an HTTP proxy that understands CONNECT: in plain text, in TLS, or over a Unix socket (HTTPConnect
// egress, proxies of the environment and of kubeconfig files). The tunnel is one end of a socket pair with a relay
// behind it, so that TLS inside it works as on any other connection. Thread safety: Dial() from any coroutine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "async/io_pool.h"
#include "http/client.h"
#include "net/dialer.h"

namespace keelson::http {

// The upstream component whose error texts are used.
enum class ConnectWords : std::uint8_t {
  kEgressSelector,  // upstream's egress selector, HTTPConnect
  kNetHTTP,         // Go's net/http: `proxyconnect tcp: ...`, or the text of the proxy's status
};

struct ConnectDialerOptions {
  net::DialTarget proxy;
  std::string proxy_name;                      // in errors
  std::shared_ptr<net::TLSClientContext> tls;  // to the proxy; null: plain text
  std::string server_name;                     // in the proxy's certificate; empty: proxy.host
  std::string host_header;                     // empty: the target's address
  std::string authorization;                   // Proxy-Authorization; empty: none
  net::DialerPtr dialer;                       // to the proxy; null: net::Dial
  ConnectWords words = ConnectWords::kEgressSelector;
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

// The host that the proxy is to connect to: the target's own, or, if the target restricts addresses, one that was
// resolved and checked here, so that the checked address is the dialled one.
Awaitable<net::Result<std::string>> AllowedHost(net::DialTarget target, std::chrono::steady_clock::time_point deadline);

// A socket whose other end is `stream`: bytes are carried both ways until one of them ends.
net::Result<net::StreamSocket> RelayToSocket(const asio::any_io_executor& executor, std::unique_ptr<Stream> stream);

}  // namespace keelson::http
