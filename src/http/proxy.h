// Proxies as Go's net/http uses them: of the environment, and of kubeconfig files (proxy-url).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "async/io_pool.h"
#include "base/outcome.h"
#include "net/dialer.h"
#include "net/tls_client.h"

namespace keelson::http {

struct Proxy {
  enum class Scheme : std::uint8_t { kHTTP, kHTTPS, kSOCKS5 };
  Scheme scheme = Scheme::kHTTP;
  net::DialTarget address;
  std::string host;  // as in the URL
  bool has_user = false;
  std::string username;
  std::string password;

  std::string Authorization() const;  // the value of Proxy-Authorization; "" without a user
};

// The error is client-go's.
Outcome<Proxy, std::string> ParseProxy(const std::string& url);

// A dialer through the proxy: CONNECT, or SOCKS5. `tls` is for proxies with https, as Go uses one TLS configuration for
// the proxy and for the target; `dialer` leads to the proxy (null: net::Dial). `pool` must outlive every tunnel.
net::DialerPtr NewProxyDialer(async::IOPool& pool, const Proxy& proxy, std::shared_ptr<net::TLSClientContext> tls,
                              net::DialerPtr dialer);

// HTTPS_PROXY, HTTP_PROXY and NO_PROXY (and their lower-case forms) as Go's net/http honours them. Loopback targets are
// never proxied.
struct ProxyEnvironment {
  std::string https_proxy;
  std::string http_proxy;
  std::string no_proxy;
  static ProxyEnvironment FromProcess();
};
// The proxy's URL for a target, "" for none.
std::string ProxyFor(const ProxyEnvironment& environment, bool https, const std::string& host, std::uint16_t port);

}  // namespace keelson::http
