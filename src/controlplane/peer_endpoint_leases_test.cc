#include "controlplane/peer_endpoint_leases.h"

#include <gtest/gtest.h>

#include <thread>

#include "async/testing/run_now.h"
#include "kv/memory/memory.h"

namespace keelson::controlplane {
namespace {

TEST(PeerEndpointLeases, AnAddressIsFoundByTheServersIdentity) {
  const auto kv = kv::memory::Open();
  PeerEndpointLeases one(*kv, {.server_id = "apiserver-one", .address = "10.0.0.1:6443", .ready = {}});
  PeerEndpointLeases two(*kv, {.server_id = "apiserver-two", .address = "[fd00::2]:6443", .ready = {}});
  EXPECT_EQ(async::RunNow(one.Find("apiserver-two")).error(), "missing port in address");
  EXPECT_EQ(async::RunNow(two.Update()), "");
  EXPECT_EQ(async::RunNow(two.Update()), "");
  const auto found = async::RunNow(one.Find("apiserver-two"));
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->host, "fd00::2");
  EXPECT_EQ(found->port, "6443");
  EXPECT_EQ(async::RunNow(one.Find("")).error(), "error getting endpoint for serverId: empty serverId");
}

TEST(PeerEndpointLeases, AddressThatIsNotAnIPIsNotWritten) {
  const auto kv = kv::memory::Open();
  PeerEndpointLeases bad(*kv, {.server_id = "apiserver-one", .address = "10.0.0.1:https", .ready = {}});
  EXPECT_EQ(async::RunNow(bad.Update()), "strconv.Atoi: parsing \"https\": invalid syntax");
  EXPECT_FALSE(async::RunNow(bad.Find("apiserver-one")).ok());
}

TEST(PeerEndpointLeases, TheAddressIsWrittenWhenTheServerIsReadyAndRemovedWhenItStops) {
  const auto kv = kv::memory::Open();
  async::IOPool io(1);
  std::atomic<int> asked{0};
  PeerEndpointLeases own(
      *kv, {.server_id = "apiserver-own", .address = "10.0.0.1:6443", .ready = [&] { return ++asked > 2; }});
  own.Start(io);
  while (!async::RunNow(own.Find("apiserver-own")).ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_GT(asked.load(), 2);
  own.Stop();
  EXPECT_FALSE(async::RunNow(own.Find("apiserver-own")).ok());
}

}  // namespace
}  // namespace keelson::controlplane
