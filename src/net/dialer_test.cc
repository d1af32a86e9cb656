#include "net/dialer.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cstring>
#include <filesystem>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "async/io_pool.h"
#include "net/listener.h"

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

TEST(Dialer, ChecksTheAddressItConnectsTo) {
  async::IOPool pool(1);
  auto listener = Listener::Listen({.address = "127.0.0.1"});
  DialTarget target{.host = "127.0.0.1", .port = listener->port(), .allow = [](const std::string&) { return false; }};
  EXPECT_EQ(DialText(pool, target), "dial tcp " + listener->address() + ": address not allowed");
}

}  // namespace
}  // namespace keelson::net
