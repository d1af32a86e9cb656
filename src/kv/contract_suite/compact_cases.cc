// Compaction: what is dropped, what stays, and the errors.
#include "kv/contract_suite/contract.h"

namespace keelson::kv {
namespace {

using Strings = std::vector<std::string>;

TEST_P(Contract, CompactedRevisionIsRefused) {
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  ASSERT_TRUE(Await(store().Compact(two, true)).ok());
  auto answer = TryRange({.key = Key("a"), .revision = one});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kCompacted);
  EXPECT_EQ(answer.error().message, "etcdserver: mvcc: required revision has been compacted");
}

TEST_P(Contract, CompactRevisionItselfIsKept) {
  Put("a", "1");
  const Revision two = Put("a", "2");
  Put("a", "3");
  ASSERT_TRUE(Await(store().Compact(two, true)).ok());
  EXPECT_EQ(Get("a", two)->value.view(), "2");
  EXPECT_EQ(Get("a", two)->version, 2);
  EXPECT_EQ(Get("a")->value.view(), "3");
}

TEST_P(Contract, CompactionKeepsLatestVersions) {
  const Revision old = Put("a", "1");
  Put("b", "1");
  const Revision last = Put("b", "2");
  ASSERT_TRUE(Await(store().Compact(last, true)).ok());
  EXPECT_EQ(Get("a")->mod_revision, old);
  EXPECT_EQ(Get("a")->value.view(), "1");
}

TEST_P(Contract, CompactionForgetsDeletedKeys) {
  Put("a", "1");
  Delete("a");
  const Revision last = Put("b", "1");
  ASSERT_TRUE(Await(store().Compact(last, true)).ok());
  EXPECT_EQ(Names(List(), prefix_), (Strings{"b"}));
  const Revision again = Put("a", "2");
  EXPECT_EQ(Get("a")->create_revision, again);
  EXPECT_EQ(Get("a")->version, 1);
}

TEST_P(Contract, CompactionKeepsVersionsAfterIt) {
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  const Revision three = Put("a", "3");
  ASSERT_TRUE(Await(store().Compact(one, true)).ok());
  EXPECT_EQ(Get("a", one)->value.view(), "1");
  EXPECT_EQ(Get("a", two)->value.view(), "2");
  EXPECT_EQ(Get("a", three)->value.view(), "3");
}

TEST_P(Contract, CompactTwiceAtOneRevisionIsRefused) {
  const Revision revision = Put("a", "1");
  ASSERT_TRUE(Await(store().Compact(revision, false)).ok());
  auto again = Await(store().Compact(revision, false));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kCompacted);
}

TEST_P(Contract, CompactBackwardsIsRefused) {
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  ASSERT_TRUE(Await(store().Compact(two, false)).ok());
  EXPECT_EQ(Await(store().Compact(one, false)).error().code, ErrorCode::kCompacted);
}

TEST_P(Contract, CompactInTheFutureIsRefused) {
  auto answer = Await(store().Compact(Now() + 100, false));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kFutureRevision);
}

TEST_P(Contract, CompactionMakesNoRevision) {
  const Revision revision = Put("a", "1");
  ASSERT_TRUE(Await(store().Compact(revision, true)).ok());
  EXPECT_EQ(Now(), revision);
  EXPECT_EQ(Put("a", "2"), revision + 1);
}

TEST_P(Contract, CompactionInSteps) {
  std::vector<Revision> revisions;
  for (int i = 0; i < 10; ++i) revisions.push_back(Put("a", std::to_string(i)));
  for (std::size_t i = 1; i < revisions.size(); i += 3) {
    ASSERT_TRUE(Await(store().Compact(revisions[i], true)).ok());
    EXPECT_EQ(Get("a", revisions[i])->value.view(), std::to_string(i));
    EXPECT_EQ(TryRange({.key = Key("a"), .revision = revisions[i - 1]}).error().code, ErrorCode::kCompacted);
  }
  EXPECT_EQ(Get("a")->version, 10);
}

TEST_P(Contract, PagesOfACompactedRevisionAreRefused) {
  for (const char* name : {"a", "b", "c"}) Put(name, "1");
  const auto page = List({.key = prefix_, .range_end = PrefixEndOfAll(), .limit = 1});
  const Revision later = Put("d", "1");
  ASSERT_TRUE(Await(store().Compact(later, false)).ok());
  auto next = TryRange({.key = page.kvs[0].key + std::string(1, '\0'),
                        .range_end = PrefixEndOfAll(),
                        .limit = 1,
                        .revision = page.revision});
  EXPECT_EQ(next.error().code, ErrorCode::kCompacted);
}

TEST_P(Contract, TxnReadOfACompactedRevisionIsRefused) {
  // As with a future revision: one member refuses this transaction, the others apply its puts.
  if (harness_->cluster()) GTEST_SKIP() << "makes the members of an etcd cluster inconsistent";
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  ASSERT_TRUE(Await(store().Compact(two, false)).ok());
  auto answer = Txn({.success = {PutOp("b", "1"), Op::Range({.key = Key("a"), .revision = one})}});
  EXPECT_EQ(answer.error().code, ErrorCode::kCompacted);
  EXPECT_FALSE(Get("b"));
}

TEST_P(Contract, WatchOfACompactedRevisionEnds) {
  const Revision one = Put("a", "1");
  Put("a", "2");
  const Revision three = Put("a", "3");
  ASSERT_TRUE(Await(store().Compact(three, true)).ok());
  Settle();
  auto watch = WatchAll(one);
  auto response = Await(watch->Next());
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kCompacted);
  EXPECT_EQ(response.error().compact_revision, three);
}

TEST_P(Contract, WatchFromTheCompactRevisionWorks) {
  Put("a", "1");
  const Revision two = Put("a", "2");
  Put("a", "3");
  ASSERT_TRUE(Await(store().Compact(two, true)).ok());
  Settle();
  auto watch = WatchAll(two);
  const auto events = Take(*watch, 2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(Describe(events[0], prefix_), "put a=2");
  EXPECT_EQ(Describe(events[1], prefix_), "put a=3");
}

TEST_P(Contract, WatchFromTheCompactRevisionSeesADeletion) {
  if (Await(store().Status())->version.starts_with("3.4."))
    GTEST_SKIP() << "etcd 3.4 forgets deletions of the compact revision itself";
  Put("a", "1");
  const Revision deleted = Delete("a");
  ASSERT_TRUE(Await(store().Compact(deleted, true)).ok());
  Settle();
  auto watch = WatchAll(deleted);
  const auto events = Take(*watch, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(Describe(events[0], prefix_), "delete a");
  EXPECT_EQ(events[0].kv.mod_revision, deleted);
}

TEST_P(Contract, CompactedPrevKVIsLeftOut) {
  Put("a", "1");
  const Revision two = Put("a", "2");
  Put("a", "3");
  ASSERT_TRUE(Await(store().Compact(two, true)).ok());
  Settle();
  auto watch = WatchAll(two, true);
  const auto events = Take(*watch, 2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_FALSE(events[0].prev_kv);
  ASSERT_TRUE(events[1].prev_kv);
  EXPECT_EQ(events[1].prev_kv->value.view(), "2");
}

TEST_P(Contract, WatchThatIsUpToDateSurvivesCompaction) {
  Put("a", "1");
  auto watch = WatchAll(Now() + 1);
  const Revision two = Put("a", "2");
  Take(*watch, 1);
  ASSERT_TRUE(Await(store().Compact(two, true)).ok());
  Put("a", "3");
  const auto events = Take(*watch, 1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(Describe(events[0], prefix_), "put a=3");
}

TEST_P(Contract, WatchThatWaitsSurvivesCompaction) {
  // The first event shows that the watch is registered: a watch from a compacted revision is rightly
  // refused.
  auto watch = WatchKey("quiet", Now() + 1);
  Put("quiet", "first");
  ASSERT_EQ(Take(*watch, 1).size(), 1u);
  auto next = Spawn(watch->Next());
  Put("a", "2");
  const Revision three = Put("a", "3");
  ASSERT_TRUE(Await(store().Compact(three, true)).ok());
  Put("quiet", "now");
  auto response = Await(std::move(next));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(Describe(response->events.at(0), prefix_), "put quiet=now");
}

TEST_P(Contract, StatusHasTheRevision) {
  const Revision revision = Put("a", "1");
  Settle();
  auto status = Await(store().Status());
  ASSERT_TRUE(status.ok());
  EXPECT_GE(status->revision, revision);
  EXPECT_FALSE(status->version.empty());
  EXPECT_GE(status->db_size, 0);
}

TEST_P(Contract, CompactionSurvivesReopening) {
  const Revision one = Put("a", "1");
  const Revision two = Put("a", "2");
  Put("gone", "1");
  const Revision last = Delete("gone");
  ASSERT_TRUE(Await(store().Compact(last, true)).ok());
  if (!harness_->Reopen()) GTEST_SKIP() << "cannot be reopened";
  EXPECT_EQ(TryRange({.key = Key("a"), .revision = one}).error().code, ErrorCode::kCompacted);
  EXPECT_EQ(TryRange({.key = Key("a"), .revision = two}).error().code, ErrorCode::kCompacted);
  EXPECT_EQ(Get("a")->value.view(), "2");
  EXPECT_EQ(Now(), last);
  EXPECT_EQ(Put("a", "3"), last + 1);
}

TEST_P(Contract, HistorySurvivesReopening) {
  const Revision one = Put("a", "1");
  Put("a", "2");
  Put("b", "1");
  Delete("a");
  if (!harness_->Reopen()) GTEST_SKIP() << "cannot be reopened";
  EXPECT_EQ(Get("a", one)->value.view(), "1");
  EXPECT_FALSE(Get("a"));
  auto watch = WatchAll(one, true);
  const auto events = Take(*watch, 4);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(Describe(events[1], prefix_), "put a=2");
  EXPECT_EQ(events[1].prev_kv->value.view(), "1");
  EXPECT_EQ(Describe(events[3], prefix_), "delete a");
  EXPECT_EQ(events[3].prev_kv->value.view(), "2");
}

TEST_P(Contract, RevisionsAreNotReusedAfterReopening) {
  Put("a", "1");
  const Revision deleted = Delete("a");
  if (!harness_->Reopen()) GTEST_SKIP() << "cannot be reopened";
  EXPECT_EQ(Now(), deleted);
  EXPECT_EQ(Put("a", "2"), deleted + 1);
}

TEST_P(Contract, RevisionsAreNotReusedAfterCompactionOfEverything) {
  Put("a", "1");
  const Revision deleted = Delete("a");
  ASSERT_TRUE(Await(store().Compact(deleted, true)).ok());
  if (!harness_->Reopen()) GTEST_SKIP() << "cannot be reopened";
  ASSERT_EQ(Now(), deleted);
  if (!harness_->Reopen()) GTEST_SKIP() << "cannot be reopened";
  EXPECT_EQ(Put("a", "2"), deleted + 1);
}

}  // namespace
}  // namespace keelson::kv
