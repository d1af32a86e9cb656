#include "net/dialer.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <optional>

#include "net/address.h"
#include "net/listener.h"

namespace keelson::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Cancels what the coroutine waits for when the deadline passes. Shared with the timer's callback, which may run after
// the coroutine.
struct Attempt {
  explicit Attempt(const asio::any_io_executor& executor) : resolver(executor), timer(executor) {}
  tcp::resolver resolver;
  asio::steady_timer timer;
  std::optional<StreamSocket> socket;
  bool expired = false;

  static void Arm(const std::shared_ptr<Attempt>& self, std::chrono::steady_clock::time_point deadline) {
    self->timer.expires_at(deadline);
    self->timer.async_wait([self](const boost::system::error_code& error) {
      if (error) return;
      self->expired = true;
      self->resolver.cancel();
      boost::system::error_code ignored;
      if (self->socket) self->socket->close(ignored);
    });
  }
};

std::string Reason(const boost::system::error_code& error) {
  if (error == asio::error::connection_refused) return "connect: connection refused";
  if (error == asio::error::host_unreachable) return "connect: no route to host";
  if (error == asio::error::network_unreachable) return "connect: network is unreachable";
  return "connect: " + error.message();
}

Awaitable<boost::system::error_code> ConnectOne(std::shared_ptr<Attempt> attempt,
                                                StreamSocket::endpoint_type endpoint) {
  boost::system::error_code error;
  attempt->socket.emplace(co_await asio::this_coro::executor);
  attempt->socket->open(endpoint.protocol(), error);
  if (error) co_return error;
  auto connected = co_await attempt->socket->async_connect(endpoint, kNoThrow);
  co_return std::get<0>(connected);
}

}  // namespace

Awaitable<Result<StreamSocket>> Dial(DialTarget target, std::chrono::steady_clock::time_point deadline) {
  auto attempt = std::make_shared<Attempt>(co_await asio::this_coro::executor);
  Attempt::Arm(attempt, deadline);
  std::vector<StreamSocket::endpoint_type> endpoints;
  std::vector<std::string> names;
  if (!target.unix_path.empty()) {
    if (target.unix_path.size() > 107) co_return Error{"dial unix " + target.unix_path + ": connect: invalid argument"};
    endpoints.emplace_back(asio::local::stream_protocol::endpoint(target.unix_path));
    names.push_back("unix " + target.unix_path);
  } else {
    std::vector<tcp::endpoint> resolved;
    boost::system::error_code no_address;
    if (const auto address = asio::ip::make_address(target.host, no_address); !no_address) {
      resolved.emplace_back(address, target.port);
    } else {
      auto answer = co_await attempt->resolver.async_resolve(target.host, std::to_string(target.port), kNoThrow);
      for (const auto& result : std::get<1>(answer)) resolved.push_back(result.endpoint());
    }
    if (resolved.empty()) {
      attempt->timer.cancel();
      co_return Error{"dial tcp: lookup " + target.host + ": " + (attempt->expired ? "i/o timeout" : "no such host")};
    }
    for (const tcp::endpoint& endpoint : resolved) {
      if (target.allow && !target.allow(endpoint.address().to_string())) {
        attempt->timer.cancel();
        co_return Error{"dial tcp " + ToString(endpoint) + ": address not allowed"};
      }
      endpoints.emplace_back(endpoint);
      names.push_back("tcp " + ToString(endpoint));
    }
  }
  std::string failure;
  for (std::size_t i = 0; i < endpoints.size() && !attempt->expired; ++i) {
    const auto error = co_await ConnectOne(attempt, endpoints[i]);
    if (!error && !attempt->expired) {
      attempt->timer.cancel();
      attempt->socket->non_blocking(true);
      if (target.unix_path.empty()) ConfigureConnection(attempt->socket->native_handle());
      StreamSocket socket = *std::move(attempt->socket);
      attempt->socket.reset();
      co_return socket;
    }
    if (failure.empty())
      failure = "dial " + names[i] + ": " + (attempt->expired ? std::string("i/o timeout") : Reason(error));
  }
  attempt->timer.cancel();
  co_return Error{failure};
}

}  // namespace keelson::net
