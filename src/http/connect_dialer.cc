#include "http/connect_dialer.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>

#include <sys/socket.h>

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

// No answer to CONNECT.
std::string FailedText(ConnectWords words, const ClientError& error, const std::string& address,
                       const std::string& proxy) {
  const bool connected = error.kind == ClientError::Kind::kClosed || error.kind == ClientError::Kind::kProtocol;
  if (words == ConnectWords::kNetHTTP) {
    const bool dialling = error.kind == ClientError::Kind::kDial || error.kind == ClientError::Kind::kTLS;
    return dialling ? "proxyconnect tcp: " + error.message : error.message;
  }
  if (!connected) return error.message;
  return "reading HTTP response from CONNECT to " + address + " via proxy " + proxy + " failed: " + error.message;
}

std::string RefusedText(ConnectWords words, int status, const std::string& address, const std::string& proxy) {
  const std::string text(StatusText(status));
  if (words == ConnectWords::kNetHTTP) return text;
  const std::string number = std::to_string(status);
  return "proxy error from " + proxy + " while dialing " + address + ", code " + number + ": " + number + " " + text;
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
  client.dialer = options_.dialer;
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
  const ConnectWords words = options_.words;
  auto answer = co_await client->Do(std::move(request));
  if (!answer.ok()) co_return net::Error{FailedText(words, answer.error(), address, proxy)};
  if (answer->stream == nullptr) co_return net::Error{RefusedText(words, answer->status, address, proxy)};
  co_return RelayToSocket(co_await asio::this_coro::executor, std::move(answer->stream));
}

}  // namespace keelson::http
