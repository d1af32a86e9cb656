// Dials through a SOCKS5 proxy (RFC 1928, with the user name and password of RFC 1929), as Go's net/http does. Names
// are resolved by the proxy. Thread safety: Dial() from any coroutine.
#pragma once

#include <optional>
#include <string>

#include "net/dialer.h"

namespace keelson::http {

struct SocksDialerOptions {
  net::DialTarget proxy;
  struct Credentials {
    std::string username;
    std::string password;
  };
  std::optional<Credentials> credentials;
  net::DialerPtr dialer;  // to the proxy; null: net::Dial
};

class SocksDialer final : public net::Dialer {
 public:
  explicit SocksDialer(SocksDialerOptions options);
  // Errors read as Go's: `proxyconnect tcp: dial tcp ...` for the way to the proxy, afterwards
  // `socks connect tcp PROXY->TARGET: unknown error host unreachable`.
  Awaitable<net::Result<net::StreamSocket>> Dial(net::DialTarget target,
                                                 std::chrono::steady_clock::time_point deadline) override;

 private:
  const std::shared_ptr<const SocksDialerOptions> options_;
};

}  // namespace keelson::http
