// Opens connections.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "async/awaitable.h"
#include "net/error.h"

namespace keelson::net {

using StreamSocket = boost::asio::generic::stream_protocol::socket;

struct DialTarget {
  std::string host;  // a name, resolved once, or an address
  std::uint16_t port = 0;
  std::string unix_path;  // instead of host and port
  // Checks each resolved address before it is dialled, so that no other one is connected to. Empty: all are fine.
  std::function<bool(const std::string& address)> allow;
};

// A connected, non-blocking socket on the calling coroutine's executor. The error reads as Go's:
// `dial tcp 127.0.0.1:443: connect: connection refused`, `dial tcp: lookup x: no such host`, `...: i/o timeout`.
Awaitable<Result<StreamSocket>> Dial(DialTarget target, std::chrono::steady_clock::time_point deadline);

// How connections are opened where it is not the plain way: through an egress proxy, a tunnel, a resolver of services.
// Thread safety: Dial() from any coroutine, and it runs on that coroutine's executor. A dialer is one more part of the
// identity of a pooled connection: connections of different dialers are never exchanged.
class Dialer {
 public:
  virtual ~Dialer() = default;
  virtual Awaitable<Result<StreamSocket>> Dial(DialTarget target, std::chrono::steady_clock::time_point deadline) = 0;
};
using DialerPtr = std::shared_ptr<Dialer>;  // null: net::Dial

}  // namespace keelson::net
