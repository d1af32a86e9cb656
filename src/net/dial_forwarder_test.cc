#include "net/dial_forwarder.h"

#include <gtest/gtest.h>

#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/testing/scripted_peer.h"

namespace keelson::net {
namespace {

using testing::ScriptedConnection;
using testing::ScriptedPeer;

// Dials another port than the requested one.
class Elsewhere final : public Dialer {
 public:
  explicit Elsewhere(std::uint16_t port) : port_(port) {}
  Awaitable<Result<StreamSocket>> Dial(DialTarget target, std::chrono::steady_clock::time_point deadline) override {
    asked = JoinText(target);
    co_return co_await net::Dial({.host = "127.0.0.1", .port = port_}, deadline);
  }
  static std::string JoinText(const DialTarget& target) { return target.host + ":" + std::to_string(target.port); }
  std::string asked;

 private:
  std::uint16_t port_;
};

int ConnectAbstract(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  return fd;
}

std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::recv(fd, buffer, sizeof(buffer), 0)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

TEST(DialForwarder, CarriesBytesThroughTheDialer) {
  ScriptedPeer peer([](ScriptedConnection& c) {
    const std::string line = c.ReadUntil("\n");
    c.Write("got " + line);
  });
  auto dialer = std::make_shared<Elsewhere>(peer.port());
  auto forwarder =
      DialForwarder::Listen(std::make_shared<async::IOPool>(1), dialer, {.host = "etcd.example", .port = 2379});
  ASSERT_TRUE(forwarder.ok());
  const int fd = ConnectAbstract((*forwarder)->name());
  ASSERT_EQ(::send(fd, "ping\n", 5, 0), 5);
  EXPECT_EQ(ReadToEnd(fd), "got ping\n");
  EXPECT_EQ(dialer->asked, "etcd.example:2379");
  ::close(fd);
}

TEST(DialForwarder, FailedDialClosesTheConnection) {
  auto forwarder =
      DialForwarder::Listen(std::make_shared<async::IOPool>(1), std::make_shared<Elsewhere>(testing::RefusingPort()),
                            {.host = "x", .port = 1});
  ASSERT_TRUE(forwarder.ok());
  const int fd = ConnectAbstract((*forwarder)->name());
  EXPECT_EQ(ReadToEnd(fd), "");
  ::close(fd);
}

TEST(DialForwarder, RefusesOtherProcesses) {
  ScriptedPeer peer([](ScriptedConnection& c) { c.Write("secret"); });
  auto forwarder = DialForwarder::Listen(std::make_shared<async::IOPool>(1), std::make_shared<Elsewhere>(peer.port()),
                                         {.host = "x", .port = 1});
  ASSERT_TRUE(forwarder.ok());
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ConnectAbstract((*forwarder)->name());
    char byte = 0;
    ::_exit(::recv(fd, &byte, 1, 0) == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(peer.connections(), 0);
}

}  // namespace
}  // namespace keelson::net
