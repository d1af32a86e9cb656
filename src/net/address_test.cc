#include "net/address.h"

#include <gtest/gtest.h>

namespace keelson::net {
namespace {

TEST(Address, JoinAndSplit) {
  struct Case {
    const char* text;
    const char* host;
    std::uint16_t port;
  };
  constexpr Case kCases[] = {
      {"127.0.0.1:6443", "127.0.0.1", 6443}, {"[::1]:443", "::1", 443}, {"example.com:80", "example.com", 80}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    EXPECT_EQ(JoinHostPort(c.host, c.port), c.text);
    auto split = SplitHostPort(c.text);
    ASSERT_TRUE(split);
    EXPECT_EQ(split->host, c.host);
    EXPECT_EQ(split->port, std::to_string(c.port));
  }
  for (const char* bad : {"", "host", "::1:80", "[::1:80", "a[b]:80"}) EXPECT_FALSE(SplitHostPort(bad)) << bad;
}

TEST(Address, WritesMappedAddressesAsIPv4) {
  namespace ip = boost::asio::ip;
  EXPECT_EQ(ToString(ip::tcp::endpoint(ip::make_address("::ffff:10.0.0.1"), 80)), "10.0.0.1:80");
  EXPECT_EQ(ToString(ip::tcp::endpoint(ip::make_address("::1"), 80)), "[::1]:80");
}

}  // namespace
}  // namespace keelson::net
