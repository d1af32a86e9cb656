// A cluster of three whose members are killed and started again under a client: writes go on at the others, a watch
// moves and neither misses nor repeats anything.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <map>
#include <set>

#include "async/io_pool.h"
#include "kv/etcd/etcd.h"
#include "kv/etcd/test_server.h"

namespace keelson::kv::etcd {
namespace {

constexpr auto kPatience = std::chrono::seconds(120);

class Failover : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = TestServer::Start(3);
    if (!server_) GTEST_SKIP() << "no etcd binary: set KEELSON_ETCD, or put one into PATH or the cache folder";
    auto opened = Open({.endpoints = server_->endpoints(), .request_timeout = std::chrono::seconds(5)});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = *std::move(opened);
  }
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.executor(0), std::move(task), asio::use_future).get();
  }
  // Until it is answered. An attempt without an answer may have happened, so a key may be written more than once.
  Revision Put(const std::string& key, const std::string& value) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      TxnRequest request{.success = {Op::Put({.key = key, .value = SharedBytes(value)})}};
      auto answer = Await(store_->Txn(std::move(request)));
      if (answer.ok()) return answer->revision;
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << answer.error().message;
        return 0;
      }
    }
  }
  std::string Get(const std::string& key) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      RangeRequest request{.key = key};
      auto answer = Await(store_->Range(std::move(request)));
      if (answer.ok()) return answer->kvs.empty() ? "" : std::string(answer->kvs[0].value.view());
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << answer.error().message;
        return "";
      }
    }
  }

  async::IOPool io_{2};
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Store> store_;
};

TEST_F(Failover, MembersAreKilledAndComeBack) {
  const Revision start = Put("/before", "1");
  auto watch = store_->Watch({.key = "/w/", .range_end = PrefixEnd("/w/"), .start_revision = start + 1});
  std::map<std::string, std::string> acknowledged;
  Revision last = start;
  int written = 0;
  for (std::size_t round = 0; round < 6; ++round) {
    const std::size_t victim = round % 3;
    server_->Kill(victim);
    for (int i = 0; i < 20; ++i, ++written) {
      const std::string key = "/w/" + std::to_string(i % 7);
      const Revision revision = Put(key, std::to_string(written));
      EXPECT_GT(revision, last) << "revisions go forward, whoever answers";
      last = revision;
      acknowledged[key] = std::to_string(written);
    }
    for (const auto& [key, value] : acknowledged) EXPECT_EQ(Get(key), value);
    server_->Restart(victim);
  }
  // Everything once, in order, up to the last write.
  std::map<std::string, std::string> seen;
  std::set<std::pair<Revision, std::string>> once;
  Revision at = start;
  while (at < last) {
    auto next = asio::co_spawn(io_.executor(1), watch->Next(), asio::use_future);
    ASSERT_EQ(next.wait_for(kPatience), std::future_status::ready);
    auto response = next.get();
    ASSERT_TRUE(response.ok()) << response.error().message;
    for (const Event& event : response->events) {
      EXPECT_GE(event.kv.mod_revision, at);
      at = event.kv.mod_revision;
      EXPECT_TRUE(once.insert({at, event.kv.key}).second) << "repeated: " << event.kv.key << " at " << at;
      seen[event.kv.key] = std::string(event.kv.value.view());
    }
  }
  EXPECT_EQ(seen, acknowledged);
  EXPECT_GE(once.size(), static_cast<std::size_t>(written));
}

TEST_F(Failover, ManyWatchesMoveTogether) {
  constexpr int kWatches = 40;
  const Revision start = Put("/before", "1");
  std::vector<std::unique_ptr<Watcher>> watches;
  const auto key = [](int i) { return "/many/" + std::to_string(i); };
  for (int i = 0; i < kWatches; ++i) watches.push_back(store_->Watch({.key = key(i), .start_revision = start + 1}));
  for (std::size_t victim = 0; victim < 3; ++victim) {
    server_->Kill(victim);
    std::vector<std::string> values;
    for (int i = 0; i < kWatches; ++i) {
      values.push_back(std::to_string(victim) + "/" + std::to_string(i));
      Put(key(i), values.back());
    }
    server_->Restart(victim);
    for (int i = 0; i < kWatches; ++i) {
      for (std::string last; last != values[static_cast<std::size_t>(i)];) {
        auto next = asio::co_spawn(io_.executor(1), watches[static_cast<std::size_t>(i)]->Next(), asio::use_future);
        ASSERT_EQ(next.wait_for(kPatience), std::future_status::ready);
        auto response = next.get();
        ASSERT_TRUE(response.ok()) << response.error().message;
        for (const Event& event : response->events) {
          EXPECT_EQ(event.kv.key, key(i));
          last = std::string(event.kv.value.view());
        }
      }
    }
  }
}

TEST_F(Failover, WithoutAMajorityNothingIsAcknowledged) {
  Put("/a", "1");
  server_->Kill(0);
  server_->Kill(1);
  TxnRequest request{.success = {Op::Put({.key = "/a", .value = SharedBytes("2")})}};
  EXPECT_FALSE(Await(store_->Txn(std::move(request))).ok());
  server_->Restart(0);
  Put("/b", "1");
  server_->Restart(1);
  EXPECT_EQ(Get("/b"), "1");
}

}  // namespace
}  // namespace keelson::kv::etcd
