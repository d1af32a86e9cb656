#include "net/resolver.h"

#include <gtest/gtest.h>

#include "async/testing/run_now.h"

namespace keelson::net {
namespace {

using namespace std::chrono_literals;

TEST(Resolver, HostsFileAndDeadline) {
  Resolver resolver;
  auto local = async::RunNow(resolver.Resolve("localhost", std::chrono::steady_clock::now() + 10s));
  ASSERT_TRUE(local.ok()) << local.error().message;
  for (const auto& address : *local) EXPECT_TRUE(address.is_loopback());
  const auto start = std::chrono::steady_clock::now();
  auto none = async::RunNow(resolver.Resolve("no-such-name.invalid", start + 300ms));
  EXPECT_FALSE(none.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 3s);
}

TEST(Resolver, LookupsAreBounded) {
  Resolver resolver;
  auto malformed = async::RunNow(resolver.Resolve(std::string(300, 'a'), std::chrono::steady_clock::now() + 5s));
  EXPECT_FALSE(malformed.ok());
}

}  // namespace
}  // namespace keelson::net
