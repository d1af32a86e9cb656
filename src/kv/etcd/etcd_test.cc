#include "kv/etcd/etcd.h"

#include <gtest/gtest.h>

#include <thread>

#include "async/testing/run_now.h"
#include "kv/contract_suite/contract.h"
#include "kv/etcd/test_server.h"
#include "kv/etcd/watch.h"

namespace keelson::kv::etcd {
namespace {

// One server (or cluster) for the whole run; cases keep to their own keys.
TestServer* SharedServer() {
  static const std::unique_ptr<TestServer> server = [] {
    const char* members = ::getenv("KEELSON_ETCD_MEMBERS");
    return TestServer::Start(members != nullptr ? std::atoi(members) : 1);
  }();
  return server.get();
}

class EtcdHarness final : public Harness {
 public:
  explicit EtcdHarness(const std::vector<std::string>& endpoints) {
    auto store = Open({.endpoints = endpoints});
    if (store.ok()) store_ = *std::move(store);
  }
  Store& store() override { return *store_; }
  void Advance(int seconds) override { std::this_thread::sleep_for(std::chrono::seconds(seconds)); }
  bool cluster() const override { return members() > 1; }
  std::size_t members() const override { return SharedServer()->endpoints().size(); }
  bool connected() const { return store_ != nullptr; }

 private:
  std::unique_ptr<Store> store_;
};

std::unique_ptr<Harness> MakeHarness() {
  TestServer* server = SharedServer();
  if (server == nullptr) return nullptr;
  auto harness = std::make_unique<EtcdHarness>(server->endpoints());
  EXPECT_TRUE(harness->connected());
  if (!harness->connected()) return nullptr;
  return harness;
}

INSTANTIATE_TEST_SUITE_P(Etcd, Contract,
                         testing::Values(HarnessParam{
                             "etcd", MakeHarness,
                             "no etcd binary: set KEELSON_ETCD, or put one into PATH or the cache folder"}),
                         [](const auto& info) { return info.param.name; });

TEST(EtcdClient, UnreachableEndpoints) {
  auto store = Open({.endpoints = {"http://127.0.0.1:1"}, .dial_timeout = std::chrono::milliseconds(300)});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, ErrorCode::kUnavailable);
}

TEST(EtcdClient, RequestsBeyondTheClientsLimitAreNotSent) {
  const auto harness = MakeHarness();
  if (!harness) GTEST_SKIP() << "no etcd binary";
  TxnRequest request;
  request.success.push_back(
      Op::Put({.key = "k", .value = base::SharedBytes(std::string((std::size_t{2} << 20) + 1, 'x'))}));
  const auto refused = async::RunNow(harness->store().Txn(std::move(request)));
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().message.starts_with(
      "rpc error: code = ResourceExhausted desc = trying to send message larger than max ("))
      << refused.error().message;
}

// More unread responses than a watch may hold: it leaves the shared stream, and misses nothing.
TEST(EtcdClient, SlowWatchMissesNothingAndDoesNotDelayOthers) {
  const auto harness = MakeHarness();
  if (!harness) GTEST_SKIP() << "no etcd binary";
  Store& store = harness->store();
  const Revision now = *async::RunNow(store.CurrentRevision());
  auto slow = store.Watch({.key = "/slow/", .range_end = PrefixEnd("/slow/"), .start_revision = now + 1});
  auto quick = store.Watch({.key = "/slow/", .range_end = PrefixEnd("/slow/"), .start_revision = now + 1});
  const std::size_t count = kHeldResponsesMax + 300;
  std::vector<Revision> written;
  for (std::size_t i = 0; i < count; ++i) {
    TxnRequest put{.success = {Op::Put({.key = "/slow/" + std::to_string(i % 7), .value = SharedBytes("v")})}};
    auto answer = async::RunNow(store.Txn(std::move(put)));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    written.push_back(answer->revision);
    // One response at a time: this watch keeps up, whatever the other does.
    std::size_t seen = 0;
    while (seen == 0) {
      auto response = async::RunNow(quick->Next());
      ASSERT_TRUE(response.ok()) << response.error().message;
      seen = response->events.size();
    }
  }
  std::vector<Revision> read;
  while (read.size() < written.size()) {
    auto response = async::RunNow(slow->Next());
    ASSERT_TRUE(response.ok()) << response.error().message;
    for (const Event& event : response->events) read.push_back(event.kv.mod_revision);
  }
  EXPECT_EQ(read, written);
}

// etcd reports no progress of a stream while a watch on it starts at the next revision.
TEST(EtcdClient, ProgressIsReportedBesideAWatchFromTheNextRevision) {
  const auto harness = MakeHarness();
  if (!harness) GTEST_SKIP() << "no etcd binary";
  Store& store = harness->store();
  TxnRequest put{.success = {Op::Put({.key = "/idle", .value = SharedBytes("v")})}};
  const Revision now = async::RunNow(store.Txn(std::move(put)))->revision;
  auto ahead = store.Watch({.key = "/ahead", .start_revision = now + 1});
  auto waits = store.Watch({.key = "/waits", .start_revision = now});
  waits->RequestProgress();  // once
  auto response = async::RunNow(waits->Next());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_TRUE(response->is_progress());
  EXPECT_GE(response->revision, now);
  put = {.success = {Op::Put({.key = "/ahead", .value = SharedBytes("v")})}};
  const Revision next = async::RunNow(store.Txn(std::move(put)))->revision;
  response = async::RunNow(ahead->Next());
  ASSERT_TRUE(response.ok()) << response.error().message;
  ASSERT_EQ(response->events.size(), 1U);
  EXPECT_EQ(response->events[0].kv.mod_revision, next);
}

// Threads open, read and close watches of one stream at the same time. Under tsan this is the race test.
TEST(EtcdClient, WatchesComeAndGoFromManyThreads) {
  const auto harness = MakeHarness();
  if (!harness) GTEST_SKIP() << "no etcd binary";
  Store& store = harness->store();
  constexpr int kThreads = 4;
  constexpr int kRounds = 30;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&store, t] {
      const std::string key = "/threads/" + std::to_string(t);
      for (int round = 0; round < kRounds; ++round) {
        TxnRequest put{.success = {Op::Put({.key = key, .value = SharedBytes("v")})}};
        auto written = async::RunNow(store.Txn(std::move(put)));
        ASSERT_TRUE(written.ok()) << written.error().message;
        auto abandoned = store.Watch({.key = key, .start_revision = written->revision});
        auto watch = store.Watch({.key = key, .start_revision = written->revision});
        auto idle = store.Watch({.key = key});
        idle->RequestProgress();
        abandoned.reset();  // in whatever phase it is
        watch->RequestProgress();
        auto response = async::RunNow(watch->Next());
        while (response.ok() && response->is_progress()) response = async::RunNow(watch->Next());
        ASSERT_TRUE(response.ok()) << response.error().message;
        ASSERT_EQ(response->events.size(), 1U);
        EXPECT_EQ(response->events[0].kv.mod_revision, written->revision);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(EtcdClient, NoEndpoints) { EXPECT_FALSE(Open({}).ok()); }

TEST(EtcdClient, MissingCertificateIsNamed) {
  auto store = Open({.endpoints = {"https://127.0.0.1:1"}, .ca_file = "/no/such/ca.crt"});
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().message, "open /no/such/ca.crt: no such file or directory");
}

}  // namespace
}  // namespace keelson::kv::etcd
