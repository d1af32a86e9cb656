#include "endpoints/proxy/transport.h"

#include "base/strings.h"
#include "net/address.h"

namespace keelson::endpoints::proxy {
namespace {

constexpr std::string_view kUnescaped = "-_.~$&+,/:;=@";  // besides letters and digits

std::uint16_t PortOf(const Location& location) {
  if (location.port.empty()) return location.scheme == "https" ? 443 : 80;
  const auto port = base::ParseInt64(location.port);
  return port && *port >= 0 && *port <= 65535 ? static_cast<std::uint16_t>(*port) : 0;
}

}  // namespace

std::string EscapePath(std::string_view path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(path.size());
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kUnescaped.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string Location::Authority() const {
  const std::string bracketed = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port.empty() ? bracketed : bracketed + ":" + port;
}

std::string Location::Target() const {
  std::string target = EscapePath(path);
  if (!target.starts_with('/')) target.insert(0, "/");
  return raw_query.empty() ? target : target + "?" + raw_query;
}

std::string Location::URL() const {
  std::string url = scheme + "://" + Authority() + EscapePath(path);
  return raw_query.empty() ? url : url + "?" + raw_query;
}

std::shared_ptr<http::Client> Transport::ClientFor(const Location& location, std::uint16_t port) {
  const bool secure = location.scheme == "https";
  std::shared_ptr<net::TLSClientContext> tls = secure && options_.tls ? options_.tls() : nullptr;
  if (secure && tls == nullptr) return nullptr;
  const std::string key = location.scheme + "://" + location.host + ":" + std::to_string(port);
  std::lock_guard lock(mutex_);
  const auto found = clients_.find(key);
  if (found != clients_.end() && found->second.tls == tls) {
    by_use_.splice(by_use_.begin(), by_use_, found->second.used);
    return found->second.client;
  }
  if (found != clients_.end()) {  // its certificates are old
    by_use_.erase(found->second.used);
    clients_.erase(found);
  }
  http::ClientOptions options;
  options.target = options_.dial ? options_.dial(location.host, port)
                                 : net::DialTarget{.host = location.host, .port = port, .unix_path = {}, .allow = {}};
  options.tls = tls;
  options.server_name = location.host;
  options.host_header = location.Authority();
  options.dial_timeout = options_.dial_timeout;
  auto client = std::make_shared<http::Client>(pool_, std::move(options));
  by_use_.push_front(key);
  clients_[key] = {client, tls, by_use_.begin()};
  if (clients_.size() > kClientsMax) {
    clients_.erase(by_use_.back());
    by_use_.pop_back();
  }
  return client;
}

Awaitable<Outcome<http::ClientResponse, http::ClientError>> Transport::Do(Location location,
                                                                          http::ClientRequest request) {
  const std::uint16_t port = PortOf(location);
  if (port == 0 && !location.port.empty() && location.port != "0") {
    const std::string network = "dial tcp: lookup tcp/" + location.port + ": unknown port";
    co_return http::ClientError{http::ClientError::Kind::kDial, network};
  }
  const auto client = ClientFor(location, port);
  if (client == nullptr) {
    co_return http::ClientError{http::ClientError::Kind::kTLS, "the TLS configuration of this connection is unusable"};
  }
  request.target = location.Target();
  co_return co_await client->Do(std::move(request));
}

}  // namespace keelson::endpoints::proxy
