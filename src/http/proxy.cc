#include "http/proxy.h"

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <cstdlib>

#include "base/go_url.h"
#include "base/strings.h"
#include "http/connect_dialer.h"
#include "http/socks_dialer.h"

namespace keelson::http {
namespace {

constexpr std::uint16_t kHTTPPort = 80, kHTTPSPort = 443, kSOCKSPort = 1080;

// One entry of NO_PROXY against a target.
bool Excludes(std::string_view entry, const std::string& host, std::uint16_t port) {
  if (entry.empty()) return false;
  if (entry == "*") return true;
  // host:port; an IPv6 address has more than one colon.
  if (const auto colon = entry.rfind(':'); colon != std::string_view::npos && entry.find(':') == colon) {
    if (base::ParseUint64(entry.substr(colon + 1)) != port) return false;
    entry = entry.substr(0, colon);
  }
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  const bool is_address = !error;
  const std::string text(entry);
  if (entry.find('/') != std::string_view::npos) {
    if (!is_address) return false;
    if (address.is_v4()) {
      const auto network = asio::ip::make_network_v4(text, error);
      return !error && network.hosts().find(address.to_v4()) != network.hosts().end();
    }
    const auto network = asio::ip::make_network_v6(text, error);
    return !error && network.hosts().find(address.to_v6()) != network.hosts().end();
  }
  const auto own = asio::ip::make_address(text, error);
  if (!error) return is_address && own == address;
  const std::string lower = base::ToLower(host);
  std::string name = base::ToLower(entry);
  if (name.starts_with("*.")) name.erase(0, 1);
  if (name.starts_with('.')) return lower.ends_with(name);
  return lower == name || lower.ends_with("." + name);
}

std::string Environment(const char* upper, const char* lower) {
  for (const char* name : {upper, lower}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != 0) return value;
  }
  return {};
}

}  // namespace

std::string Proxy::Authorization() const {
  return has_user ? "Basic " + base::Base64Encode(username + ":" + password) : std::string();
}

Outcome<Proxy, std::string> ParseProxy(const std::string& text) {
  const auto url = base::ParseURL(text);
  if (!url.ok()) return "could not parse: " + text;
  Proxy proxy;
  std::uint16_t usual_port = kHTTPPort;
  if (url->scheme == "https") {
    proxy.scheme = Proxy::Scheme::kHTTPS;
    usual_port = kHTTPSPort;
  } else if (url->scheme == "socks5") {
    proxy.scheme = Proxy::Scheme::kSOCKS5;
    usual_port = kSOCKSPort;
  } else if (url->scheme != "http") {
    return "unsupported scheme " + base::GoQuote(url->scheme) + ", must be http, https, or socks5";
  }
  const auto port = base::ParseUint64(url->Port());
  proxy.address = {.host = url->Hostname(), .port = static_cast<std::uint16_t>(port.value_or(usual_port))};
  proxy.host = url->host;
  proxy.has_user = url->has_user;
  proxy.username = url->user;
  proxy.password = url->password;
  return proxy;
}

net::DialerPtr NewProxyDialer(async::IOPool& pool, const Proxy& proxy, std::shared_ptr<net::TLSClientContext> tls,
                              net::DialerPtr dialer) {
  if (proxy.scheme == Proxy::Scheme::kSOCKS5) {
    SocksDialerOptions options{.proxy = proxy.address, .dialer = std::move(dialer)};
    if (proxy.has_user) options.credentials = {proxy.username, proxy.password};
    return std::make_shared<SocksDialer>(std::move(options));
  }
  return std::make_shared<ConnectDialer>(
      pool, ConnectDialerOptions{.proxy = proxy.address,
                                 .proxy_name = proxy.host,
                                 .tls = proxy.scheme == Proxy::Scheme::kHTTPS ? std::move(tls) : nullptr,
                                 .authorization = proxy.Authorization(),
                                 .dialer = std::move(dialer),
                                 .words = ConnectWords::kNetHTTP});
}

ProxyEnvironment ProxyEnvironment::FromProcess() {
  ProxyEnvironment environment;
  environment.https_proxy = Environment("HTTPS_PROXY", "https_proxy");
  environment.http_proxy = Environment("HTTP_PROXY", "http_proxy");
  environment.no_proxy = Environment("NO_PROXY", "no_proxy");
  return environment;
}

std::string ProxyFor(const ProxyEnvironment& environment, bool https, const std::string& host, std::uint16_t port) {
  const std::string& proxy = https ? environment.https_proxy : environment.http_proxy;
  if (proxy.empty() || base::ToLower(host) == "localhost") return {};
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (!error && address.is_loopback()) return {};
  for (const std::string_view entry : base::Split(environment.no_proxy, ',')) {
    if (Excludes(base::Trim(entry), host, port)) return {};
  }
  return proxy;
}

}  // namespace keelson::http
