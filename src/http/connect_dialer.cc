#include "http/connect_dialer.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>

#include <sys/socket.h>

#include "base/strings.h"
#include "net/address.h"
#include "net/resolver.h"

namespace keelson::http {
namespace {

// The two halves of a relay share their ends; whichever finishes first closes both.
struct Tunnel {
  Tunnel(net::StreamSocket socket, std::unique_ptr<Stream> stream)
      : socket(std::move(socket)), stream(std::move(stream)) {}
  net::StreamSocket socket;
  std::unique_ptr<Stream> stream;

  void Close() {
    boost::system::error_code ignored;
    socket.close(ignored);
    stream->Close();
  }
};

Awaitable<void> Upward(std::shared_ptr<Tunnel> tunnel) {
  std::array<char, 16 * 1024> buffer;
  for (;;) {
    auto read = co_await tunnel->socket.async_read_some(asio::buffer(buffer), kNoThrow);
    if (std::get<0>(read)) break;
    auto written = co_await tunnel->stream->Write(SharedBytes(std::string_view(buffer.data(), std::get<1>(read))));
    if (!written.ok()) break;
  }
  tunnel->Close();
}

Awaitable<void> Downward(std::shared_ptr<Tunnel> tunnel) {
  for (;;) {
    auto bytes = co_await tunnel->stream->Read();
    if (!bytes.ok() || bytes->empty()) break;
    const SharedBytes held = *std::move(bytes);
    const std::string_view view = held.view();
    auto written = co_await asio::async_write(tunnel->socket, asio::buffer(view.data(), view.size()), kNoThrow);
    if (std::get<0>(written)) break;
  }
  tunnel->Close();
}

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

net::Result<net::StreamSocket> RelayToSocket(const asio::any_io_executor& executor, std::unique_ptr<Stream> stream) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    return net::Error{"socketpair: too many open files"};
  const asio::generic::stream_protocol protocol{asio::local::stream_protocol()};
  net::StreamSocket ours(executor, protocol, ends[0]);
  net::StreamSocket theirs(executor, protocol, ends[1]);
  auto tunnel = std::make_shared<Tunnel>(std::move(ours), std::move(stream));
  asio::co_spawn(executor, Upward(tunnel), asio::detached);
  asio::co_spawn(executor, Downward(tunnel), asio::detached);
  return theirs;
}

Awaitable<net::Result<std::string>> AllowedHost(net::DialTarget target,
                                                std::chrono::steady_clock::time_point deadline) {
  if (!target.allow) co_return target.host;
  std::vector<asio::ip::address> addresses;
  boost::system::error_code no_address;
  if (const auto literal = asio::ip::make_address(target.host, no_address); !no_address) {
    addresses.push_back(literal);
  } else {
    auto resolved = co_await net::Resolver::Global().Resolve(target.host, deadline);
    if (!resolved.ok()) co_return net::Error{"dial tcp: lookup " + target.host + resolved.error().message};
    addresses = *std::move(resolved);
  }
  for (const auto& one : addresses) {
    if (target.allow(one.to_string())) continue;
    co_return net::Error{"dial tcp " + net::JoinHostPort(one.to_string(), target.port) + ": address not allowed"};
  }
  co_return addresses.front().to_string();
}

ConnectDialer::ConnectDialer(async::IOPool& pool, ConnectDialerOptions options) : options_(std::move(options)) {
  ClientOptions client;
  client.target = options_.proxy;
  client.tls = options_.tls;
  client.server_name = options_.server_name;
  client.http1_only = true;
  client_ = std::make_shared<Client>(pool, std::move(client));
}

Awaitable<net::Result<net::StreamSocket>> ConnectDialer::Dial(net::DialTarget target,
                                                              std::chrono::steady_clock::time_point deadline) {
  auto host = co_await AllowedHost(target, deadline);
  if (!host.ok()) co_return host.error();
  const std::string address = net::JoinHostPort(*host, target.port);
  const std::string proxy = options_.proxy_name;
  ClientRequest request;
  request.method = "CONNECT";
  request.target = address;
  request.headers.Set("Host", options_.host_header.empty() ? address : options_.host_header);
  if (!options_.authorization.empty()) request.headers.Set("Proxy-Authorization", options_.authorization);
  request.deadline = deadline;
  request.upgrade = true;
  auto client = client_;
  auto answer = co_await client->Do(std::move(request));
  if (!answer.ok()) {
    const bool connected =
        answer.error().kind == ClientError::Kind::kClosed || answer.error().kind == ClientError::Kind::kProtocol;
    co_return net::Error{connected ? "reading HTTP response from CONNECT to " + address + " via proxy " + proxy +
                                         " failed: " + answer.error().message
                                   : answer.error().message};
  }
  if (answer->stream == nullptr) {
    co_return net::Error{"proxy error from " + proxy + " while dialing " + address + ", code " +
                         std::to_string(answer->status) + ": " + std::to_string(answer->status) + " " +
                         std::string(StatusText(answer->status))};
  }
  co_return RelayToSocket(co_await asio::this_coro::executor, std::move(answer->stream));
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
