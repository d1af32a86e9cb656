// Watching: nothing missed, repeated or reordered; whole revisions; from the past, from now, from the future.
#include <map>

#include "kv/contract_suite/contract.h"

namespace keelson::kv {
namespace {

using Strings = std::vector<std::string>;

Strings DescribeAll(const std::vector<Event>& events, std::string_view prefix) {
  Strings lines;
  for (const Event& event : events) lines.push_back(Describe(event, prefix));
  return lines;
}

TEST_P(Contract, WatchFromNowSeesLaterEvents) {
  Put("a", "before");
  auto watch = WatchAll(Now() + 1);
  Put("a", "after");
  EXPECT_EQ(DescribeAll(Take(*watch, 1), prefix_), (Strings{"put a=after"}));
}

TEST_P(Contract, WatchWithoutRevisionStartsNow) {
  Put("a", "before");
  auto watch = WatchAll();
  auto next = Spawn(watch->Next());
  auto response = AwaitWhile(std::move(next), std::chrono::milliseconds(20), [&] { Put("a", "after"); });
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(Describe(response->events.at(0), prefix_), "put a=after");
}

TEST_P(Contract, WatchFromThePastReplays) {
  const Revision one = Put("a", "1");
  Put("b", "1");
  Put("a", "2");
  Delete("b");
  auto watch = WatchAll(one);
  EXPECT_EQ(DescribeAll(Take(*watch, 4), prefix_), (Strings{"put a=1", "put b=1", "put a=2", "delete b"}));
}

TEST_P(Contract, WatchFromThePastThenLive) {
  const Revision one = Put("a", "1");
  auto watch = WatchAll(one);
  EXPECT_EQ(DescribeAll(Take(*watch, 1), prefix_), (Strings{"put a=1"}));
  Put("a", "2");
  EXPECT_EQ(DescribeAll(Take(*watch, 1), prefix_), (Strings{"put a=2"}));
}

TEST_P(Contract, WatchStartIsInclusive) {
  Put("a", "1");
  const Revision two = Put("a", "2");
  auto watch = WatchAll(two);
  EXPECT_EQ(DescribeAll(Take(*watch, 1), prefix_), (Strings{"put a=2"}));
}

TEST_P(Contract, WatchFromTheFutureSkipsWhatIsBefore) {
  const Revision now = Put("a", "0");
  auto watch = WatchAll(now + 3);
  Put("a", "1");
  Put("a", "2");
  Put("a", "3");
  EXPECT_EQ(DescribeAll(Take(*watch, 1), prefix_), (Strings{"put a=3"}));
}

TEST_P(Contract, WatchOfOneKeySeesOnlyThat) {
  auto watch = WatchKey("a", Now() + 1);
  Put("ab", "1");
  Put("a", "1");
  Put("b", "1");
  Put("a", "2");
  EXPECT_EQ(DescribeAll(Take(*watch, 2), prefix_), (Strings{"put a=1", "put a=2"}));
}

TEST_P(Contract, WatchOfARangeIsExclusiveAtItsEnd) {
  auto watch = store().Watch({.key = Key("b"), .range_end = Key("d"), .start_revision = Now() + 1});
  for (const char* name : {"a", "b", "c", "d", "bb"}) Put(name, "1");
  EXPECT_EQ(DescribeAll(Take(*watch, 3), prefix_), (Strings{"put b=1", "put c=1", "put bb=1"}));
}

TEST_P(Contract, WatchFromKeyOnSeesTheRest) {
  auto watch = store().Watch({.key = Key("b"), .range_end = std::string(1, '\0'), .start_revision = Now() + 1});
  for (const char* name : {"a", "b", "z"}) Put(name, "1");
  EXPECT_EQ(DescribeAll(Take(*watch, 2), prefix_), (Strings{"put b=1", "put z=1"}));
}

TEST_P(Contract, PutEventHasTheKeysNumbers) {
  auto watch = WatchAll(Now() + 1);
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  const auto events = Take(*watch, 2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_TRUE(events[0].is_create());
  EXPECT_FALSE(events[1].is_create());
  EXPECT_EQ(events[1].kv.create_revision, one);
  EXPECT_EQ(events[1].kv.mod_revision, two);
  EXPECT_EQ(events[1].kv.version, 2);
}

TEST_P(Contract, DeleteEventHasKeyAndRevisionOnly) {
  Put("a", "1");
  auto watch = WatchAll(Now() + 1);
  const Revision deleted = Delete("a");
  const auto events = Take(*watch, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, Event::Type::kDelete);
  EXPECT_EQ(events[0].kv.key, Key("a"));
  EXPECT_EQ(events[0].kv.mod_revision, deleted);
  EXPECT_EQ(events[0].kv.create_revision, 0);
  EXPECT_EQ(events[0].kv.version, 0);
  EXPECT_TRUE(events[0].kv.value.empty());
}

TEST_P(Contract, PrevKVOfAnUpdate) {
  const Revision one = Put("a", "1");
  auto watch = WatchAll(Now() + 1, true);
  Put("a", "2");
  const auto events = Take(*watch, 1);
  ASSERT_TRUE(events.at(0).prev_kv);
  EXPECT_EQ(events[0].prev_kv->value.view(), "1");
  EXPECT_EQ(events[0].prev_kv->mod_revision, one);
  EXPECT_EQ(events[0].prev_kv->version, 1);
}

TEST_P(Contract, PrevKVOfACreationIsNone) {
  auto watch = WatchAll(Now() + 1, true);
  Put("a", "1");
  EXPECT_FALSE(Take(*watch, 1).at(0).prev_kv);
}

TEST_P(Contract, PrevKVOfADeletion) {
  Put("a", "1");
  auto watch = WatchAll(Now() + 1, true);
  Delete("a");
  const auto events = Take(*watch, 1);
  ASSERT_TRUE(events.at(0).prev_kv);
  EXPECT_EQ(events[0].prev_kv->value.view(), "1");
}

TEST_P(Contract, PrevKVAfterDeletionAndCreationIsNone) {
  const Revision one = Put("a", "1");
  Delete("a");
  Put("a", "2");
  auto watch = WatchAll(one, true);
  const auto events = Take(*watch, 3);
  EXPECT_FALSE(events.at(0).prev_kv);
  EXPECT_TRUE(events.at(1).prev_kv);
  EXPECT_FALSE(events.at(2).prev_kv);
}

TEST_P(Contract, PrevKVInAReplay) {
  const Revision one = Put("a", "1");
  Put("a", "2");
  Put("a", "3");
  auto watch = WatchAll(one, true);
  const auto events = Take(*watch, 3);
  EXPECT_EQ(events.at(1).prev_kv->value.view(), "1");
  EXPECT_EQ(events.at(2).prev_kv->value.view(), "2");
}

TEST_P(Contract, WithoutPrevKVThereIsNone) {
  Put("a", "1");
  auto watch = WatchAll(Now() + 1, false);
  Put("a", "2");
  EXPECT_FALSE(Take(*watch, 1).at(0).prev_kv);
}

TEST_P(Contract, NoPutFilter) {
  auto watch =
      store().Watch({.key = prefix_, .range_end = PrefixEndOfAll(), .start_revision = Now() + 1, .no_put = true});
  Put("a", "1");
  Delete("a");
  EXPECT_EQ(DescribeAll(Take(*watch, 1), prefix_), (Strings{"delete a"}));
}

TEST_P(Contract, NoDeleteFilter) {
  auto watch =
      store().Watch({.key = prefix_, .range_end = PrefixEndOfAll(), .start_revision = Now() + 1, .no_delete = true});
  Put("a", "1");
  Delete("a");
  Put("a", "2");
  EXPECT_EQ(DescribeAll(Take(*watch, 2), prefix_), (Strings{"put a=1", "put a=2"}));
}

TEST_P(Contract, TxnEventsComeTogetherInOrder) {
  Put("c", "1");
  auto watch = WatchAll(Now() + 1);
  ASSERT_TRUE(Txn({.success = {PutOp("b", "1"), PutOp("a", "1"), DeleteOp("c")}}).ok());
  auto response = Await(watch->Next());
  ASSERT_TRUE(response.ok());
  ASSERT_EQ(response->events.size(), 3u);
  EXPECT_EQ(DescribeAll(response->events, prefix_), (Strings{"put b=1", "put a=1", "delete c"}));
  EXPECT_EQ(response->events[0].kv.mod_revision, response->events[2].kv.mod_revision);
}

TEST_P(Contract, ResponseHasTheStoreRevision) {
  auto watch = WatchAll(Now() + 1);
  const Revision one = Put("a", "1");
  auto response = Await(watch->Next());
  ASSERT_TRUE(response.ok());
  EXPECT_GE(response->revision, one);
}

TEST_P(Contract, ManyRevisionsAreDeliveredWhole) {
  const Revision start = Now() + 1;
  constexpr int kTxns = 60;
  constexpr int kOps = 50;
  for (int i = 0; i < kTxns; ++i) {
    TxnRequest request;
    for (int j = 0; j < kOps; ++j) request.success.push_back(PutOp("k" + std::to_string(j), std::to_string(i)));
    ASSERT_TRUE(Txn(std::move(request)).ok());
  }
  auto watch = WatchAll(start);
  std::map<Revision, std::size_t> in_response;
  std::size_t total = 0;
  Revision last = 0;
  while (total < static_cast<std::size_t>(kTxns * kOps)) {
    auto response = Await(watch->Next());
    ASSERT_TRUE(response.ok());
    std::map<Revision, int> counts;
    for (const Event& event : response->events) {
      EXPECT_GE(event.kv.mod_revision, last);
      last = event.kv.mod_revision;
      ++counts[event.kv.mod_revision];
    }
    for (const auto& [revision, count] : counts) {
      EXPECT_EQ(count, kOps) << "revision " << revision << " was split";
      EXPECT_EQ(++in_response[revision], 1u) << "revision " << revision << " came twice";
    }
    total += response->events.size();
  }
  EXPECT_EQ(in_response.size(), static_cast<std::size_t>(kTxns));
}

TEST_P(Contract, LargeRevisionIsNotSplit) {
  // More than fits into one message of etcd's: it comes in fragments and has to be put together.
  auto watch = WatchAll(Now() + 1);
  const std::string value(120 * 1024, 'x');
  TxnRequest request;
  for (int i = 0; i < 12; ++i) request.success.push_back(PutOp("k" + std::to_string(100 + i), value));
  ASSERT_TRUE(Txn(std::move(request)).ok());
  auto response = Await(watch->Next());
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->events.size(), 12u);
}

TEST_P(Contract, LargeReplay) {
  const Revision start = Now() + 1;
  const std::string value(200 * 1024, 'x');
  for (int i = 0; i < 24; ++i) Put("k" + std::to_string(i), value);
  auto watch = WatchAll(start);
  const auto events = Take(*watch, 24);
  for (const Event& event : events) EXPECT_EQ(event.kv.value.size(), value.size());
}

TEST_P(Contract, ProgressOnRequest) {
  const Revision revision = Put("a", "1");
  // Not from the next revision on: etcd reports no progress for a watch whose start is not reached.
  auto watch = WatchKey("quiet", revision);
  auto next = Spawn(watch->Next());
  watch->RequestProgress();
  auto response = AwaitWhile(std::move(next), std::chrono::milliseconds(200), [&] { watch->RequestProgress(); });
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(response->is_progress());
  EXPECT_GE(response->revision, revision);
}

TEST_P(Contract, ProgressComesAfterTheEventsBeforeIt) {
  auto watch = WatchAll(Now() + 1);
  Revision last = 0;
  for (int i = 0; i < 20; ++i) last = Put("a", std::to_string(i));
  watch->RequestProgress();
  std::size_t events = 0;
  for (;;) {
    auto response = Await(watch->Next());
    ASSERT_TRUE(response.ok());
    events += response->events.size();
    if (events < 20 && response->is_progress()) {
      EXPECT_LT(response->revision, last) << "progress told of events that were not delivered";
    }
    if (events == 20) break;
  }
}

TEST_P(Contract, ProgressCoversOtherKeys) {
  auto watch = WatchKey("quiet", Now() + 1);
  Revision last = 0;
  for (int i = 0; i < 5; ++i) last = Put("busy", std::to_string(i));
  for (;;) {
    auto next = Spawn(watch->Next());
    watch->RequestProgress();
    auto response = AwaitWhile(std::move(next), std::chrono::milliseconds(200), [&] { watch->RequestProgress(); });
    ASSERT_TRUE(response.ok());
    EXPECT_TRUE(response->is_progress());
    if (response->revision >= last) break;
  }
}

TEST_P(Contract, CancelEndsAWaitingWatch) {
  auto watch = WatchAll(Now() + 1);
  auto next = Spawn(watch->Next());
  watch->Cancel();
  auto response = Await(std::move(next));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kCanceled);
}

TEST_P(Contract, CancelBeforeNext) {
  auto watch = WatchAll(Now() + 1);
  watch->Cancel();
  EXPECT_EQ(Await(watch->Next()).error().code, ErrorCode::kCanceled);
  EXPECT_EQ(Await(watch->Next()).error().code, ErrorCode::kCanceled);
}

TEST_P(Contract, CancelTwice) {
  auto watch = WatchAll(Now() + 1);
  watch->Cancel();
  watch->Cancel();
  EXPECT_FALSE(Await(watch->Next()).ok());
}

TEST_P(Contract, UnreadWatchCostsNoMemory) {
  auto watch = WatchAll(Now() + 1);
  for (int i = 0; i < 100; ++i) Put("a", std::to_string(i));
  watch.reset();
  EXPECT_EQ(Get("a")->version, 100);
}

TEST_P(Contract, OtherWatchesGoOnWhenOneIsCancelled) {
  auto one = WatchAll(Now() + 1);
  auto two = WatchAll(Now() + 1);
  one->Cancel();
  Put("a", "1");
  EXPECT_EQ(DescribeAll(Take(*two, 1), prefix_), (Strings{"put a=1"}));
}

TEST_P(Contract, ManyWatchersSeeTheSame) {
  constexpr int kWatchers = 50;
  const Revision start = Now() + 1;
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < kWatchers; ++i) watchers.push_back(WatchAll(start));
  for (int i = 0; i < 10; ++i) Put("k" + std::to_string(i % 3), std::to_string(i));
  const auto want = DescribeAll(Take(*watchers[0], 10), prefix_);
  for (int i = 1; i < kWatchers; ++i)
    EXPECT_EQ(DescribeAll(Take(*watchers[static_cast<std::size_t>(i)], 10), prefix_), want);
}

TEST_P(Contract, SlowWatcherGetsEverything) {
  auto watch = WatchAll(Now() + 1);
  for (int i = 0; i < 2500; i += 50) {
    TxnRequest request;
    for (int j = 0; j < 50; ++j) request.success.push_back(PutOp("k" + std::to_string(i + j), "1"));
    ASSERT_TRUE(Txn(std::move(request)).ok());
  }
  const auto events = Take(*watch, 2500);
  for (std::size_t i = 0; i < events.size(); ++i)
    ASSERT_EQ(Describe(events[i], prefix_), "put k" + std::to_string(i) + "=1");
}

TEST_P(Contract, WatchOfEmptyKeyWithRangeOfEverything) {
  // etcd reads key "" with an end as "from the first key on".
  auto watch =
      store().Watch({.key = std::string(1, '\0'), .range_end = std::string(1, '\0'), .start_revision = Now() + 1});
  Put("a", "1");
  // It sees every key of a store that other cases use too (their leases expire), so ours is looked for.
  for (int responses = 0; responses < 100; ++responses) {
    auto response = Await(watch->Next());
    ASSERT_TRUE(response.ok()) << response.error().message;
    for (const Event& event : response->events) {
      if (event.kv.key == Key("a")) return;
    }
  }
  ADD_FAILURE() << "the event did not come";
}

}  // namespace
}  // namespace keelson::kv
