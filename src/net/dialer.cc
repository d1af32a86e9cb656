#include "net/dialer.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <optional>

#include "async/parked.h"
#include "net/address.h"
#include "net/listener.h"
#include "net/resolver.h"
#include "net/resolving_dialer.h"

namespace keelson::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFallbackDelay{300};  // Go's happy eyeballs (RFC 6555)
constexpr std::chrono::seconds kAddressTimeMin{2};        // of an address while others wait, where there is time for it
constexpr std::size_t kUnixPathMax = 107;

std::string Reason(const boost::system::error_code& error) {
  if (error == asio::error::connection_refused) return "connect: connection refused";
  if (error == asio::error::host_unreachable) return "connect: no route to host";
  if (error == asio::error::network_unreachable) return "connect: network is unreachable";
  if (error == asio::error::timed_out) return "connect: connection timed out";
  std::string text = error.message();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return "connect: " + text;
}

struct Candidate {
  StreamSocket::endpoint_type endpoint;
  std::string name;  // tcp 10.0.0.1:443
};

// Attempts that race for one connection. Everything on one executor.
struct Race {
  explicit Race(const asio::any_io_executor& executor) : executor(executor) {}
  asio::any_io_executor executor;
  std::optional<StreamSocket> winner;
  std::string error;  // of the first attempt that failed, the primary addresses' before the others'
  bool over = false;
  int running = 0;
  std::vector<std::weak_ptr<StreamSocket>> sockets;
  std::function<void()> wake;

  void Wake() {
    if (auto waiting = std::exchange(wake, nullptr)) waiting();
  }
  // Ends what is still under way.
  void End() {
    over = true;
    for (const auto& weak : sockets) {
      boost::system::error_code ignored;
      if (auto socket = weak.lock()) socket->close(ignored);
    }
    Wake();
  }
};
using RacePtr = std::shared_ptr<Race>;

// Waits until the race has news or `until` has come.
Awaitable<void> WaitForNews(RacePtr race, Clock::time_point until) {
  auto timer = std::make_shared<asio::steady_timer>(race->executor, until);
  co_await async::Park([race, timer](std::function<void()> wake) {
    race->wake = std::move(wake);
    timer->async_wait([race, timer](const boost::system::error_code& error) {
      if (!error) race->Wake();
    });
  });
  timer->cancel();
}

// Connects to one address; "" or Go's reason.
Awaitable<std::string> ConnectOne(RacePtr race, std::shared_ptr<StreamSocket> socket,
                                  StreamSocket::endpoint_type endpoint, Clock::time_point deadline) {
  boost::system::error_code error;
  socket->open(endpoint.protocol(), error);
  if (error) co_return Reason(error);
  auto expired = std::make_shared<bool>(false);
  auto timer = std::make_shared<asio::steady_timer>(race->executor, deadline);
  timer->async_wait([socket, timer, expired](const boost::system::error_code& ended) {
    if (ended) return;
    *expired = true;
    boost::system::error_code ignored;
    socket->close(ignored);
  });
  auto connected = co_await socket->async_connect(endpoint, kNoThrow);
  timer->cancel();
  error = std::get<0>(connected);
  if (*expired) co_return "i/o timeout";
  co_return error ? Reason(error) : std::string();
}

// One address after the other; each gets its share of the time that is left, so that a dead one leaves some for the
// rest.
Awaitable<void> DialSerial(RacePtr race, std::vector<Candidate> candidates, Clock::time_point deadline, bool primary) {
  std::string failure;
  for (std::size_t i = 0; i < candidates.size() && !race->over && !race->winner; ++i) {
    const auto now = Clock::now();
    auto share = (deadline - now) / static_cast<int>(candidates.size() - i);
    if (share < kAddressTimeMin) share = std::min<Clock::duration>(deadline - now, kAddressTimeMin);
    auto socket = std::make_shared<StreamSocket>(race->executor);
    race->sockets.push_back(socket);
    const std::string reason = co_await ConnectOne(race, socket, candidates[i].endpoint, now + share);
    if (reason.empty() && !race->over && !race->winner) {
      race->winner.emplace(std::move(*socket));
      break;
    }
    if (failure.empty()) failure = "dial " + candidates[i].name + ": " + reason;
  }
  if (!failure.empty() && (race->error.empty() || primary)) race->error = failure;
  --race->running;
  race->Wake();
}

void StartSerial(const RacePtr& race, std::vector<Candidate> candidates, Clock::time_point deadline, bool primary) {
  ++race->running;
  asio::co_spawn(race->executor, DialSerial(race, std::move(candidates), deadline, primary), asio::detached);
}

Awaitable<Result<StreamSocket>> DialRace(std::vector<Candidate> primaries, std::vector<Candidate> fallbacks,
                                         Clock::time_point deadline) {
  auto race = std::make_shared<Race>(co_await asio::this_coro::executor);
  const std::string first = primaries.front().name;
  StartSerial(race, std::move(primaries), deadline, true);
  auto fallback_at = Clock::now() + kFallbackDelay;
  while (!race->winner && Clock::now() < deadline) {
    const bool more = !fallbacks.empty();
    if (race->running == 0 && !more) break;
    if (more && (race->running == 0 || Clock::now() >= fallback_at)) {
      StartSerial(race, std::exchange(fallbacks, {}), deadline, false);
      continue;
    }
    co_await WaitForNews(race, fallbacks.empty() ? deadline : std::min(deadline, fallback_at));
  }
  race->End();
  if (!race->winner) co_return Error{race->error.empty() ? "dial " + first + ": i/o timeout" : race->error};
  co_return *std::exchange(race->winner, std::nullopt);
}

Awaitable<Result<StreamSocket>> DialUnix(std::string path, Clock::time_point deadline) {
  if (path.size() > kUnixPathMax) co_return Error{"dial unix " + path + ": connect: invalid argument"};
  std::vector<Candidate> only;
  only.push_back({asio::local::stream_protocol::endpoint(path), "unix " + path});
  auto socket = co_await DialRace(std::move(only), {}, deadline);
  if (socket.ok()) socket->non_blocking(true);
  co_return socket;
}

// `resolver` lives until the answer is there.
Awaitable<Result<StreamSocket>> DialWith(Resolver& resolver, DialTarget target, Clock::time_point deadline) {
  if (!target.unix_path.empty()) co_return co_await DialUnix(target.unix_path, deadline);
  std::vector<asio::ip::address> addresses;
  boost::system::error_code no_address;
  if (const auto address = asio::ip::make_address(target.host, no_address); !no_address) {
    addresses.push_back(address);
  } else {
    auto resolved = co_await resolver.Resolve(target.host, deadline);
    if (!resolved.ok()) co_return Error{"dial tcp: lookup " + target.host + resolved.error().message};
    addresses = *std::move(resolved);
  }
  std::vector<Candidate> primaries, fallbacks;
  for (const auto& address : addresses) {
    const tcp::endpoint endpoint(address, target.port);
    if (target.allow && !target.allow(address.to_string()))
      co_return Error{"dial tcp " + ToString(endpoint) + ": address not allowed"};
    auto& list = address.is_v4() == addresses.front().is_v4() ? primaries : fallbacks;
    list.push_back({endpoint, "tcp " + ToString(endpoint)});
  }
  auto socket = co_await DialRace(std::move(primaries), std::move(fallbacks), deadline);
  if (!socket.ok()) co_return socket;
  socket->non_blocking(true);
  ConfigureConnection(socket->native_handle());
  co_return socket;
}

Awaitable<Result<StreamSocket>> DialKeeping(std::shared_ptr<Resolver> resolver, DialTarget target,
                                            Clock::time_point deadline) {
  co_return co_await DialWith(*resolver, std::move(target), deadline);
}

}  // namespace

Awaitable<Result<StreamSocket>> Dial(DialTarget target, Clock::time_point deadline) {
  return DialWith(Resolver::Global(), std::move(target), deadline);
}

Awaitable<Result<StreamSocket>> ResolvingDialer::Dial(DialTarget target, Clock::time_point deadline) {
  return DialKeeping(resolver_, std::move(target), deadline);
}

}  // namespace keelson::net
