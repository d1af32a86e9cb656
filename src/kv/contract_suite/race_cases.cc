// Many at once: what every client must still be able to rely on.
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include <algorithm>

#include "kv/contract_suite/contract.h"

namespace keelson::kv {
namespace {

using Counts = std::map<std::string, int>;

Awaitable<int> Increment(Store& store, std::string key, int times) {
  int conflicts = 0;
  for (int done = 0; done < times;) {
    RangeRequest get{.key = key};
    auto read = co_await store.Range(std::move(get));
    if (!read.ok()) co_return -1;
    const Revision mod = read->kvs.empty() ? 0 : read->kvs[0].mod_revision;
    const int value = read->kvs.empty() ? 0 : std::stoi(std::string(read->kvs[0].value.view()));
    TxnRequest swap{.compare = {{.key = key, .number = mod}},
                    .success = {Op::Put({.key = key, .value = SharedBytes(std::to_string(value + 1))})},
                    .failure = {Op::Range({.key = key})}};
    auto answer = co_await store.Txn(std::move(swap));
    if (!answer.ok()) co_return -1;
    if (answer->succeeded) {
      ++done;
    } else {
      ++conflicts;
    }
  }
  co_return conflicts;
}

TEST_P(Contract, CompareAndSwapCountsExactly) {
  constexpr int kClients = 8;
  constexpr int kTimes = 25;
  std::vector<std::future<int>> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(Spawn(Increment(store(), Key("counter"), kTimes)));
  for (auto& client : clients) EXPECT_GE(Await(std::move(client)), 0);
  EXPECT_EQ(Get("counter")->value.view(), std::to_string(kClients * kTimes));
  EXPECT_EQ(Get("counter")->version, kClients * kTimes);
}

Awaitable<bool> TryCreate(Store& store, std::string key, std::string value) {
  TxnRequest create{.compare = {{.key = key, .number = 0}},
                    .success = {Op::Put({.key = key, .value = SharedBytes(value)})}};
  auto answer = co_await store.Txn(std::move(create));
  co_return answer.ok() && answer->succeeded;
}

TEST_P(Contract, OnlyOneCreates) {
  for (int round = 0; round < 10; ++round) {
    std::vector<std::future<bool>> clients;
    for (int i = 0; i < 10; ++i)
      clients.push_back(Spawn(TryCreate(store(), Key("k" + std::to_string(round)), std::to_string(i))));
    int created = 0;
    for (auto& client : clients) created += Await(std::move(client)) ? 1 : 0;
    EXPECT_EQ(created, 1);
  }
}

Awaitable<std::vector<Revision>> PutMany(Store& store, std::string prefix, int from, int count) {
  std::vector<Revision> revisions;
  for (int i = from; i < from + count; ++i) {
    TxnRequest put{
        .success = {Op::Put({.key = prefix + std::to_string(i % 7), .value = SharedBytes(std::to_string(i))})}};
    auto answer = co_await store.Txn(std::move(put));
    if (!answer.ok()) break;
    revisions.push_back(answer->revision);
  }
  co_return revisions;
}

TEST_P(Contract, RevisionsAreGivenOnce) {
  std::vector<std::future<std::vector<Revision>>> clients;
  for (int i = 0; i < 6; ++i) clients.push_back(Spawn(PutMany(store(), prefix_, i * 1000, 50)));
  std::set<Revision> all;
  for (auto& client : clients) {
    const auto revisions = Await(std::move(client));
    EXPECT_EQ(revisions.size(), 50u);
    EXPECT_TRUE(std::ranges::is_sorted(revisions));
    all.insert(revisions.begin(), revisions.end());
  }
  EXPECT_EQ(all.size(), 300u);
}

Awaitable<std::vector<Event>> Collect(Watcher& watcher, std::size_t count) {
  std::vector<Event> events;
  while (events.size() < count) {
    auto response = co_await watcher.Next();
    if (!response.ok()) break;
    for (Event& event : response->events) events.push_back(std::move(event));
  }
  co_return events;
}

TEST_P(Contract, WatchersSeeConcurrentWritesInOrder) {
  const Revision start = Now() + 1;
  std::vector<std::unique_ptr<Watcher>> watchers;
  std::vector<std::future<std::vector<Event>>> seen;
  for (int i = 0; i < 4; ++i) {
    watchers.push_back(WatchAll(start, true));
    seen.push_back(Spawn(Collect(*watchers.back(), 300)));
  }
  std::vector<std::future<std::vector<Revision>>> clients;
  for (int i = 0; i < 6; ++i) clients.push_back(Spawn(PutMany(store(), prefix_, i * 1000, 50)));
  for (auto& client : clients) Await(std::move(client));
  std::vector<Revision> first;
  for (auto& future : seen) {
    const auto events = Await(std::move(future));
    ASSERT_EQ(events.size(), 300u);
    std::vector<Revision> revisions;
    std::map<std::string, std::string> state;
    for (const Event& event : events) {
      revisions.push_back(event.kv.mod_revision);
      const auto before = state.find(event.kv.key);
      ASSERT_EQ(event.prev_kv.has_value(), before != state.end());
      if (event.prev_kv) EXPECT_EQ(event.prev_kv->value.view(), before->second);
      state[event.kv.key] = std::string(event.kv.value.view());
    }
    EXPECT_TRUE(std::ranges::is_sorted(revisions));
    if (first.empty()) first = revisions;
    EXPECT_EQ(revisions, first);
  }
}

TEST_P(Contract, WatchStartedAnywhereSeesTheRest) {
  const Revision start = Now() + 1;
  auto writer = Spawn(PutMany(store(), prefix_, 0, 200));
  std::vector<std::unique_ptr<Watcher>> watchers;
  std::vector<std::future<std::vector<Event>>> seen;
  for (int i = 0; i < 10; ++i) {
    watchers.push_back(WatchAll(start + i * 20));
    seen.push_back(Spawn(Collect(*watchers.back(), static_cast<std::size_t>(200 - i * 20))));
  }
  const auto revisions = Await(std::move(writer));
  ASSERT_EQ(revisions.size(), 200u);
  for (int i = 0; i < 10; ++i) {
    const auto events = Await(std::move(seen[static_cast<std::size_t>(i)]));
    ASSERT_EQ(events.size(), static_cast<std::size_t>(200 - i * 20));
    for (std::size_t j = 0; j < events.size(); ++j)
      ASSERT_EQ(events[j].kv.mod_revision, revisions[j + static_cast<std::size_t>(i) * 20]);
  }
}

TEST_P(Contract, CancelWhileEventsArrive) {
  for (int round = 0; round < 20; ++round) {
    auto watch = WatchAll(Now() + 1);
    auto seen = Spawn(Collect(*watch, 1000));
    auto writer = Spawn(PutMany(store(), prefix_, 0, 5));
    watch->Cancel();
    Await(std::move(writer));
    EXPECT_LE(Await(std::move(seen)).size(), 5u);
  }
}

Awaitable<Revision> CompactAlong(Store& store, std::atomic<bool>& stop) {
  Revision last = 0;
  while (!stop || last == 0) {  // once at least, however late it was given a turn
    auto now = co_await store.CurrentRevision();
    if (!now.ok()) break;
    if (*now <= last + 20) {
      auto again = asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
      co_await std::move(again);
      continue;
    }
    auto done = co_await store.Compact(*now - 10, true);
    if (done.ok()) last = *now - 10;
  }
  co_return last;
}

TEST_P(Contract, CompactionDuringWritesAndReads) {
  std::atomic<bool> stop{false};
  auto compactor = Spawn(CompactAlong(store(), stop));
  std::vector<std::future<std::vector<Revision>>> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Spawn(PutMany(store(), prefix_, i * 1000, 100)));
  for (int i = 0; i < 50; ++i) {
    const auto all = List();
    for (const KeyValue& kv : all.kvs) EXPECT_FALSE(kv.value.empty());
  }
  for (auto& client : clients) EXPECT_EQ(Await(std::move(client)).size(), 100u);
  stop = true;
  EXPECT_GT(Await(std::move(compactor)), 0);
  EXPECT_EQ(List().count, 7);
}

TEST_P(Contract, ReadsSeeWholeTransactions) {
  std::atomic<bool> stop{false};
  const auto write = [](Store& kv, std::string a, std::string b, std::atomic<bool>& end) -> Awaitable<int> {
    int i = 0;
    for (; !end; ++i) {
      const SharedBytes value(std::to_string(i));
      TxnRequest both{.success = {Op::Put({.key = a, .value = value}), Op::Put({.key = b, .value = value})}};
      auto answer = co_await kv.Txn(std::move(both));
      if (!answer.ok()) break;
    }
    co_return i;
  };
  auto writer = Spawn(write(store(), Key("a"), Key("b"), stop));
  for (int i = 0; i < 100; ++i) {
    const auto both = List();
    if (both.kvs.empty()) continue;
    ASSERT_EQ(both.kvs.size(), 2u);
    EXPECT_EQ(both.kvs[0].value.view(), both.kvs[1].value.view());
    EXPECT_EQ(both.kvs[0].mod_revision, both.kvs[1].mod_revision);
  }
  stop = true;
  EXPECT_GT(Await(std::move(writer)), 0);
}

TEST_P(Contract, ReadsNeverGoBack) {
  auto writer = Spawn(PutMany(store(), prefix_, 0, 300));
  Revision last = 0;
  for (int i = 0; i < 200; ++i) {
    const auto all = List({.key = prefix_, .range_end = PrefixEndOfAll(), .keys_only = true});
    EXPECT_GE(all.revision, last);
    last = all.revision;
    for (const KeyValue& kv : all.kvs) EXPECT_LE(kv.mod_revision, all.revision);
  }
  Await(std::move(writer));
}

TEST_P(Contract, WrittenIsReadAtOnce) {
  for (int i = 0; i < 100; ++i) {
    const Revision revision = Put("a", std::to_string(i));
    const auto answer = List({.key = Key("a")});
    ASSERT_GE(answer.revision, revision);
    ASSERT_EQ(answer.kvs.at(0).value.view(), std::to_string(i));
  }
}

TEST_P(Contract, CurrentRevisionIsNotBehindAWrite) {
  for (int i = 0; i < 50; ++i) {
    const Revision revision = Put("a", std::to_string(i));
    ASSERT_GE(Now(), revision);
  }
}

TEST_P(Contract, RevokeDuringPuts) {
  auto granted = Await(store().LeaseGrant(60));
  ASSERT_TRUE(granted.ok());
  const LeaseID lease = granted->id;
  const auto put = [](Store& kv, std::string prefix, LeaseID id) -> Awaitable<int> {
    int done = 0;
    for (int i = 0; i < 200; ++i) {
      TxnRequest one{.success = {Op::Put({.key = prefix + std::to_string(i), .value = SharedBytes("1"), .lease = id})}};
      auto answer = co_await kv.Txn(std::move(one));
      if (!answer.ok()) break;
      ++done;
    }
    co_return done;
  };
  auto writer = Spawn(put(store(), prefix_, lease));
  auto revoked = Await(store().LeaseRevoke(lease));
  EXPECT_TRUE(revoked.ok());
  Await(std::move(writer));
  EXPECT_EQ(List().count, 0) << "keys outlived their lease";
}

TEST_P(Contract, WatchersComeAndGoDuringWrites) {
  auto writer = Spawn(PutMany(store(), prefix_, 0, 300));
  for (int i = 0; i < 60; ++i) {
    auto watch = i % 2 == 0 ? WatchAll(0) : WatchKey("3", 0, true);
    if (i % 3 == 0) {
      auto next = Spawn(watch->Next());
      watch->Cancel();
      IgnoreError(Await(std::move(next)), "an event or the cancellation");
    }
  }
  EXPECT_EQ(Await(std::move(writer)).size(), 300u);
}

}  // namespace
}  // namespace keelson::kv
