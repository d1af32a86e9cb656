#include "net/dial_forwarder.h"

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <set>

#include <sys/socket.h>
#include <unistd.h>

#include "base/random.h"
#include "net/address.h"
#include "telemetry/log.h"

namespace keelson::net {
namespace asio = boost::asio;
namespace {

constexpr std::chrono::seconds kDialTimeout{30};
constexpr std::chrono::milliseconds kAcceptRetry{100};
constexpr std::size_t kCopyBytes = 32 * 1024;

// The two ends of one forwarded connection.
struct Pair {
  Pair(StreamSocket near, StreamSocket far) : near(std::move(near)), far(std::move(far)) {}
  StreamSocket near;
  StreamSocket far;
  void Close() {
    boost::system::error_code ignored;
    near.close(ignored);
    far.close(ignored);
  }
};

bool OfThisProcess(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == ::getpid();
}

}  // namespace

struct DialForwarder::State {
  State(const asio::any_io_executor& executor, DialerPtr dialer, DialTarget target)
      : dialer(std::move(dialer)), target(std::move(target)), acceptor(executor) {}

  const DialerPtr dialer;
  const DialTarget target;
  asio::local::stream_protocol::acceptor acceptor;
  bool closed = false;
  std::set<std::shared_ptr<Pair>> pairs;
  std::string told;  // the last error of a dial that was logged, until a dial succeeds

  void Close() {
    closed = true;
    boost::system::error_code ignored;
    acceptor.close(ignored);
    for (const auto& pair : pairs) pair->Close();
  }
  void Tell(const std::string& error) {
    if (error != told)
      log::Warning("Could not dial through the egress proxy", "target", JoinHostPort(target.host, target.port), "err",
                   error);
    told = error;
  }

  static Awaitable<void> Accept(std::shared_ptr<State> self);
  static Awaitable<void> Forward(std::shared_ptr<State> self, StreamSocket near);
  static Awaitable<void> Copy(std::shared_ptr<State> self, std::shared_ptr<Pair> pair, bool outward);
};

Awaitable<void> DialForwarder::State::Copy(std::shared_ptr<State> self, std::shared_ptr<Pair> pair, bool outward) {
  StreamSocket& from = outward ? pair->near : pair->far;
  StreamSocket& to = outward ? pair->far : pair->near;
  std::array<char, kCopyBytes> buffer;
  for (;;) {
    auto read = co_await from.async_read_some(asio::buffer(buffer), kNoThrow);
    if (std::get<0>(read)) break;
    auto written = co_await asio::async_write(to, asio::buffer(buffer.data(), std::get<1>(read)), kNoThrow);
    if (std::get<0>(written)) break;
  }
  pair->Close();
  self->pairs.erase(pair);
}

Awaitable<void> DialForwarder::State::Forward(std::shared_ptr<State> self, StreamSocket near) {
  auto far = co_await self->dialer->Dial(self->target, std::chrono::steady_clock::now() + kDialTimeout);
  if (!far.ok()) {
    self->Tell(far.error().message);
    co_return;
  }
  self->told.clear();
  auto pair = std::make_shared<Pair>(std::move(near), *std::move(far));
  if (self->closed) co_return;
  self->pairs.insert(pair);
  asio::co_spawn(self->acceptor.get_executor(), Copy(self, pair, true), asio::detached);
  asio::co_spawn(self->acceptor.get_executor(), Copy(self, pair, false), asio::detached);
}

Awaitable<void> DialForwarder::State::Accept(std::shared_ptr<State> self) {
  while (!self->closed) {
    auto accepted = co_await self->acceptor.async_accept(kNoThrow);
    if (self->closed) co_return;
    if (std::get<0>(accepted)) {  // Out of descriptors, say.
      asio::steady_timer timer(self->acceptor.get_executor(), kAcceptRetry);
      co_await timer.async_wait(kNoThrow);
      continue;
    }
    auto& socket = std::get<1>(accepted);
    if (!OfThisProcess(socket.native_handle())) continue;
    asio::co_spawn(self->acceptor.get_executor(), Forward(self, StreamSocket(std::move(socket))), asio::detached);
  }
}

Result<std::unique_ptr<DialForwarder>> DialForwarder::Listen(std::shared_ptr<async::IOPool> pool, DialerPtr dialer,
                                                             DialTarget target) {
  auto state = std::make_shared<State>(pool->Next(), std::move(dialer), std::move(target));
  std::string name = "keelson-egress-" + base::Random::Real().UUID();
  const asio::local::stream_protocol::endpoint endpoint(std::string(1, '\0') + name);
  boost::system::error_code error;
  state->acceptor.open(endpoint.protocol(), error);
  if (!error) state->acceptor.bind(endpoint, error);
  if (!error) state->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return Error{"listen unix @" + name + ": " + error.message()};
  asio::co_spawn(state->acceptor.get_executor(), State::Accept(state), asio::detached);
  return std::unique_ptr<DialForwarder>(new DialForwarder(std::move(pool), std::move(state), std::move(name)));
}

DialForwarder::~DialForwarder() {
  asio::post(state_->acceptor.get_executor(), [state = state_] { state->Close(); });
}

}  // namespace keelson::net
