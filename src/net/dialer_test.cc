#include "net/dialer.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_future.hpp>
#include <cstring>
#include <filesystem>
#include <future>
#include <mutex>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "async/io_pool.h"
#include "net/listener.h"
#include "net/resolving_dialer.h"
#include "net/testing/scripted_dns.h"

namespace keelson::net {
namespace {

Awaitable<std::string> TryDial(DialTarget target) {
  auto socket = co_await Dial(std::move(target), std::chrono::steady_clock::now() + std::chrono::seconds(10));
  co_return socket.ok() ? "connected" : socket.error().message;
}

std::string DialText(async::IOPool& pool, DialTarget target) {
  auto dial = TryDial(std::move(target));
  return asio::co_spawn(pool.executor(0), std::move(dial), asio::use_future).get();
}

TEST(Dialer, ConnectsToAddressesNamesAndUnixSockets) {
  async::IOPool pool(1);
  auto listener = Listener::Listen({.address = "127.0.0.1"});
  ASSERT_TRUE(listener.ok());
  EXPECT_EQ(DialText(pool, {.host = "127.0.0.1", .port = listener->port()}), "connected");
  EXPECT_EQ(DialText(pool, {.host = "localhost", .port = listener->port()}), "connected");

  const std::string path = std::filesystem::temp_directory_path() / ("keelson-dial-" + std::to_string(::getpid()));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  EXPECT_EQ(DialText(pool, {.unix_path = path}), "connected");
  ::close(fd);
  std::filesystem::remove(path);
  EXPECT_EQ(DialText(pool, {.unix_path = path}), "dial unix " + path + ": connect: no such file or directory");
  EXPECT_EQ(DialText(pool, {.unix_path = std::string(200, 'x')}),
            "dial unix " + std::string(200, 'x') + ": connect: invalid argument");
}

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using testing::DeadListener;
using testing::ScriptedDNS;

Awaitable<std::string> TryDialWith(ResolvingDialer& dialer, std::string host, std::uint16_t port,
                                   std::chrono::milliseconds timeout) {
  DialTarget target{.host = std::move(host), .port = port};
  auto socket = co_await dialer.Dial(std::move(target), std::chrono::steady_clock::now() + timeout);
  co_return socket.ok() ? "connected" : socket.error().message;
}

// Names with several addresses, bad ones before or behind the good one 127.0.0.1.
std::optional<std::vector<std::string>> Addresses(const std::string& name) {
  if (name == "refused.test") return {{"127.0.0.2", "127.0.0.1"}};
  if (name == "dead.test") return {{"127.0.0.3", "127.0.0.1"}};
  if (name == "all-refused.test") return {{"127.0.0.2"}};
  if (name == "eyeballs.test") return {{"::1", "127.0.0.1"}};
  if (name == "fast.test") return {{"127.0.0.1"}};
  if (name == "slow.test") return std::nullopt;
  return std::vector<std::string>();
}

TEST(Dialer, NamesWithUnreachableOrNoAddresses) {
  const ScriptedDNS dns(Addresses);
  ResolvingDialer dialer(std::make_shared<Resolver>(Resolver::Options{.servers = dns.address()}));
  async::IOPool pool(1);
  auto listener = Listener::Listen({.address = "127.0.0.1"});
  ASSERT_TRUE(listener.ok());
  const std::uint16_t port = listener->port();
  const DeadListener dead("127.0.0.3", port), dead_v6("::1", port);
  ASSERT_TRUE(dead.ok());
  const auto dial = [&](const char* name, std::chrono::milliseconds timeout) {
    auto dialling = TryDialWith(dialer, name, port, timeout);
    return asio::co_spawn(pool.executor(0), std::move(dialling), asio::use_future).get();
  };
  EXPECT_EQ(dial("refused.test", 60s), "connected");
  EXPECT_EQ(dial("dead.test", 6s), "connected");  // the dead address gets its share of the time only
  if (dead_v6.ok()) {
    EXPECT_EQ(dial("eyeballs.test", 60s), "connected");
  }
  EXPECT_EQ(dial("all-refused.test", 60s),
            "dial tcp 127.0.0.2:" + std::to_string(port) + ": connect: connection refused");
  EXPECT_EQ(dial("none.test", 60s), "dial tcp: lookup none.test on " + dns.address() + ": no such host");
  EXPECT_EQ(dial("slow.test", 300ms), "dial tcp: lookup slow.test: i/o timeout");
}

TEST(Dialer, SlowLookupDelaysNoOther) {
  const ScriptedDNS dns(Addresses);
  ResolvingDialer dialer(std::make_shared<Resolver>(Resolver::Options{.servers = dns.address()}));
  async::IOPool pool(1);
  auto listener = Listener::Listen({.address = "127.0.0.1"});
  ASSERT_TRUE(listener.ok());
  auto slow = TryDialWith(dialer, "slow.test", listener->port(), 2s);
  auto waiting = asio::co_spawn(pool.executor(0), std::move(slow), asio::use_future);
  auto fast = TryDialWith(dialer, "fast.test", listener->port(), 60s);
  EXPECT_EQ(asio::co_spawn(pool.executor(0), std::move(fast), asio::use_future).get(), "connected");
  EXPECT_EQ(waiting.get(), "dial tcp: lookup slow.test: i/o timeout");
}

TEST(Dialer, LookupThatOutlivesItsThreadIsDropped) {
  std::promise<void> asked, may_answer;
  const auto answer = may_answer.get_future().share();
  std::once_flag first;
  const ScriptedDNS dns([&](const std::string&) -> std::optional<std::vector<std::string>> {
    std::call_once(first, [&] { asked.set_value(); });
    answer.wait();
    return {{"127.0.0.1"}};
  });
  auto resolver = std::make_shared<Resolver>(Resolver::Options{.servers = dns.address()});
  ResolvingDialer dialer(resolver);
  {
    async::IOPool pool(1);
    auto dialling = TryDialWith(dialer, "late.test", 1, 60s);
    asio::co_spawn(pool.executor(0), std::move(dialling), asio::detached);
    asked.get_future().wait();
  }
  may_answer.set_value();
  // Answers come in order: this one is behind the late one.
  async::IOPool pool(1);
  auto listener = Listener::Listen({.address = "127.0.0.1"});
  auto dialling = TryDialWith(dialer, "next.test", listener->port(), 60s);
  EXPECT_EQ(asio::co_spawn(pool.executor(0), std::move(dialling), asio::use_future).get(), "connected");
}

TEST(Dialer, ChecksTheAddressItConnectsTo) {
  async::IOPool pool(1);
  auto listener = Listener::Listen({.address = "127.0.0.1"});
  DialTarget target{.host = "127.0.0.1", .port = listener->port(), .allow = [](const std::string&) { return false; }};
  EXPECT_EQ(DialText(pool, target), "dial tcp " + listener->address() + ": address not allowed");
}

}  // namespace
}  // namespace keelson::net
