#include "net/listener.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace keelson::net {
namespace {

TEST(Listener, PortZeroFindsAFreePort) {
  auto listener = Listener::Listen({.address = "127.0.0.1"});
  ASSERT_TRUE(listener.ok());
  EXPECT_NE(listener->port(), 0);
  EXPECT_EQ(listener->address(), "127.0.0.1:" + std::to_string(listener->port()));
}

TEST(Listener, PortInUseIsAnError) {
  auto first = Listener::Listen({.address = "127.0.0.1"});
  ASSERT_TRUE(first.ok());
  auto second = Listener::Listen({.address = "127.0.0.1", .port = first->port()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().message, "listen tcp " + first->address() + ": bind: address already in use");
}

TEST(Listener, SharesAPortOnRequest) {
  auto first = Listener::Listen({.address = "127.0.0.1", .permit_port_sharing = true});
  ASSERT_TRUE(first.ok());
  auto second = Listener::Listen({.address = "127.0.0.1", .port = first->port(), .permit_port_sharing = true});
  EXPECT_TRUE(second.ok());
}

TEST(Listener, RefusesInvalidAddresses) {
  auto listener = Listener::Listen({.address = "localhost"});
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error().message, "listen tcp localhost:0: invalid IP address");
}

TEST(Listener, UnixSocketReplacesAnExistingFile) {
  const std::string path = ::testing::TempDir() + "listener_test.sock";
  std::ofstream(path) << "an old file";
  const auto first = Listener::ListenUnix(path);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->address(), path);
  EXPECT_TRUE(Listener::ListenUnix(path).ok()) << "left behind by a server that was killed";
  EXPECT_EQ(Listener::ListenUnix("/nowhere/at/all.sock").error().message,
            "listen unix /nowhere/at/all.sock: bind: no such file or directory");
  EXPECT_EQ(Listener::ListenUnix("/" + std::string(200, 'x')).error().message,
            "listen unix /" + std::string(200, 'x') + ": bind: invalid argument");
  std::remove(path.c_str());
}

}  // namespace
}  // namespace keelson::net
