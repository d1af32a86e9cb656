// Behaviour of the cacher beyond the storage contract: freshness, readiness, bookmarks, lost connections, selective
// waking.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "base/strings.h"
#include "cacher/cacher_fixture.h"
#include "cacher/dispatcher.h"
#include "cacher/event_ring.h"

namespace keelson::cacher {
namespace {

using storage::ListOptions;

TEST_F(CacherTest, ResourceVersionZeroIgnoresTheLimit) {
  for (char c = 'a'; c <= 'e'; ++c) Create({.name = std::string(1, c)});
  Sync();
  const auto list = List("/pods", {.resource_version = "0", .predicate = {.limit = 2}});
  EXPECT_EQ(list.items.size(), 5u);
  EXPECT_EQ(list.continue_token, "");
}

TEST_F(CacherTest, ContinueTokensBeginWithASlashAndPagesComeFromTheCache) {
  for (char c = 'a'; c <= 'e'; ++c) Create({.name = std::string(1, c)});
  const auto first = List("/pods/default", {.predicate = {.limit = 2}});
  EXPECT_NE(base::Base64URLDecode(first.continue_token)->find(R"("start":"/b\u0000")"), std::string::npos);
  Delete("d");
  Sync();
  const auto ranges = harness().failing().ranges();
  const auto second = List("/pods/default", {.predicate = {.limit = 2, .continue_token = first.continue_token}});
  EXPECT_EQ(Names(second), "c d");
  EXPECT_EQ(second.resource_version, first.resource_version);
  // The state is forgotten after a while; then history brings it back.
  harness().Pass(std::chrono::seconds(100));
  EXPECT_EQ(Names(List("/pods/default", {.predicate = {.limit = 2, .continue_token = second.continue_token}})), "e");
  EXPECT_EQ(harness().failing().ranges(), ranges);
}

// The gate ListFromCacheSnapshot, off: the store answers whatever is not the present.
TEST_F(CacherTest, ExactRevisionListGoesToStorageWithoutSnapshots) {
  CacherOptions options = CacherHarness::DefaultOptions();
  options.list_from_snapshots = false;
  Start(options);
  for (char c = 'a'; c <= 'e'; ++c) Create({.name = std::string(1, c)});
  const auto ranges = [&] { return harness().failing().ranges(); };
  const auto first = List("/pods", {.predicate = {.limit = 2}});  // the present is the cache's
  const auto before = ranges();
  EXPECT_EQ(Names(List("/pods", {.predicate = {.limit = 2, .continue_token = first.continue_token}})), "c d");
  EXPECT_GT(ranges(), before);
  const auto exact = ranges();
  EXPECT_EQ(Names(List("/pods", {.resource_version = std::to_string(first.resource_version - 1),
                                 .resource_version_match = "Exact"})),
            "a b c d");
  EXPECT_GT(ranges(), exact);
}

TEST_F(CacherTest, ReadsOfTheLatestShareTheCachedObject) {
  Create({.name = "a"});
  Sync();
  const auto listed = List("/pods", {.resource_version = "0"});
  auto got = Await(cacher().Get("/pods/default/a", {}));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->get(), listed.items[0].get());
}

TEST_F(CacherTest, ReadWaitsForItsRevisionAndTimesOut) {
  Create({.name = "a"});
  Sync();
  const auto now = cacher().resource_version();
  auto pending = Spawn(cacher().GetList(
      "/pods", {.resource_version = std::to_string(now + 1), .resource_version_match = "NotOlderThan"}));
  Create({.name = "b"});
  auto list = pending.get();
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(Names(*list), "a b");

  auto late = Spawn(cacher().Get("/pods/default/a", {.resource_version = "1000000"}));
  PassUntil(late);
  auto got = late.get();
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().status->code(), 504);
  EXPECT_EQ(got.error().status->message(),
            "Timeout: Too large resource version: 1000000, current: " + std::to_string(now + 1));
  EXPECT_EQ(got.error().status->details()->retry_after_seconds, 1);
}

// A GET at "0" may be answered with an old state of an object, never with the time before it was there.
TEST_F(CacherTest, GetAtZeroReadsMissingObjectsFromTheStore) {
  Create({.name = "a"});
  Sync();
  harness().failing().Hold();
  Create({.name = "b"});
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a");
  EXPECT_TRUE(Await(cacher().Get("/pods/default/b", {.resource_version = "0"})).ok());
  auto missing = Await(cacher().Get("/pods/default/c", {.resource_version = "0"}));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, storage::ErrorCode::kKeyNotFound);
  harness().failing().Release();
}

// If the cache is stale, consistent reads go to the store.
TEST_F(CacherTest, ConsistentReadFallsBackToTheStore) {
  Create({.name = "a"});
  Sync();
  harness().failing().Hold();
  Create({.name = "b"});
  auto pending = Spawn(cacher().GetList("/pods", {}));
  PassUntil(pending);
  auto list = pending.get();
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(Names(*list), "a b");
  EXPECT_EQ(cacher().metrics().consistent_read_fallbacks, 1u);
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a");
  harness().failing().Release();
  Sync();
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a b");
}

// etcd before 3.4.31 and 3.5.13 may report progress before the events up to it.
TEST_F(CacherTest, ConsistentReadGoesToAnEtcdWithUnorderedProgress) {
  auto memory = harness().memory();
  Create({.name = "a"});
  harness_.reset();
  harness_ = std::make_unique<CacherHarness>(io_, CacherHarness::DefaultOptions(), memory, 64 << 20, "3.4.23");
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a") << "it is ready without progress";
  PutElsewhere("/registry/secrets/x");
  // No time passes here: the cache is not waited for.
  EXPECT_EQ(Names(List("/pods", {})), "a");
  EXPECT_EQ(cacher().metrics().consistent_read_fallbacks, 1u);
  auto watch = Watch("/pods", {.predicate = {.allow_watch_bookmarks = true}, .send_initial_events = true});
  PassUntilEvent(*watch);
  harness_.reset();
  harness_ = std::make_unique<CacherHarness>(io_, CacherHarness::DefaultOptions(), memory, 64 << 20, "3.5.13");
  PutElsewhere("/registry/secrets/x");
  EXPECT_EQ(Names(List("/pods", {})), "a");
  EXPECT_EQ(cacher().metrics().consistent_read_fallbacks, 0u);
}

// The cache cannot catch up here, and need not: the store knows that nothing is there.
TEST_F(CacherTest, ConsistentListOfNothingDoesNotWaitForTheCache) {
  Create({.name = "a"});
  Sync();
  harness().failing().Hold();
  const std::uint64_t behind = cacher().resource_version();
  PutElsewhere("/registry/secrets/x");
  const auto empty = List("/pods/other", {});
  EXPECT_EQ(Names(empty), "");
  EXPECT_GT(empty.resource_version, behind) << "the newest revision, at which the list is empty";
  EXPECT_EQ(cacher().resource_version(), behind);
  EXPECT_EQ(cacher().metrics().consistent_read_fallbacks, 0u);

  // An object that the cache has not seen yet is found.
  Create({.name = "b", .name_space = "other"});
  auto pending = Spawn(cacher().GetList("/pods/other", {}));
  PassUntil(pending);
  auto list = pending.get();
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(Names(*list), "b");
  harness().failing().Release();
  Sync();
  // A watch from the list's revision goes on from there.
  auto watch = Watch("/pods/other", {.resource_version = std::to_string(empty.resource_version)});
  EXPECT_EQ(watch->NextText().substr(0, 13), "ADDED other/b");
}

TEST_F(CacherTest, ConsistentReadNeedsNoWaitWhenOthersWrite) {
  Create({.name = "a"});
  Sync();
  for (int i = 0; i < 20; ++i) PutElsewhere("/registry/secrets/x");
  // No time passes here: the answer comes from a progress request.
  EXPECT_GT(List("/pods", {}).resource_version, cacher().resource_version() - 1);
  EXPECT_EQ(cacher().metrics().consistent_read_fallbacks, 0u);
}

// An unreadable change keeps the state before it and all watchers; processing continues once it is overwritten or
// deleted.
TEST_F(CacherTest, UnreadableChangeIsRetried) {
  Create({.name = "a"});
  auto watch = Watch("/pods", {.resource_version = "0"});
  EXPECT_EQ(watch->NextText().substr(0, 15), "ADDED default/a");
  PutPodElsewhere("b");
  PutElsewhere("/registry/pods/default/a", "garbage");
  EXPECT_EQ(watch->NextText().substr(0, 15), "ADDED default/b");  // what came before it is there
  PutPodElsewhere("c");
  auto pending = Spawn(cacher().GetList("/pods", {}));
  PassUntil(pending);
  EXPECT_EQ(pending.get().error().ToString(), "the text is no object");  // from the store
  EXPECT_TRUE(cacher().Ready());
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a b");
  ASSERT_TRUE(Await(cacher().DeleteUnread("/pods/default/a")).ok());
  PassUntilEvent(*watch);
  EXPECT_EQ(watch->NextText().substr(0, 15), "ADDED default/c");
  EXPECT_EQ(watch->NextText().substr(0, 17), "DELETED default/a");
  EXPECT_EQ(cacher().metrics().initializations, 1u);
}

TEST_F(CacherTest, UnreadableChangeIsSkippedAfterATimeout) {
  Create({.name = "a"});
  auto watch = Watch("/pods", {.resource_version = "0"});
  EXPECT_EQ(watch->NextText().substr(0, 15), "ADDED default/a");
  PutElsewhere("/registry/pods/default/a", "garbage");
  const auto begun = harness().clock().Monotonic();
  PassUntil([&] { return !cacher().Ready(); });
  EXPECT_GE(harness().clock().Monotonic() - begun, std::chrono::seconds(30));
  EXPECT_EQ(watch->NextText(), "END");
  PutPodElsewhere("a");
  PassUntil([&] { return cacher().Ready(); });
  EXPECT_EQ(Names(List("/pods", {})), "a");
}

// History begins after what cannot be read.
TEST_F(CacherTest, UnreadableHistoryIsSkipped) {
  Create({.name = "a"});
  Sync();
  const auto before = cacher().resource_version();
  PutElsewhere("/registry/pods/default/b", "garbage");
  ASSERT_TRUE(Await(cacher().DeleteUnread("/pods/default/b")).ok());
  Restart();
  const auto after = List("/pods", {}).resource_version;
  PutPodElsewhere("c");
  auto old = Watch("/pods", {.resource_version = std::to_string(before)});
  EXPECT_EQ(old->NextText().substr(0, 9), "ERROR 410");
  auto recent = Watch("/pods", {.resource_version = std::to_string(after)});
  EXPECT_EQ(recent->NextText().substr(0, 15), "ADDED default/c");
}

// A value that the store has lost and that was overwritten since: the state is whole, only history is not.
TEST_F(CacherTest, DamagedHistoryIsSkipped) {
  Create({.name = "a"});
  harness().failing().Disconnect();
  PutPodElsewhere("b");
  Compact();
  const auto compacted = *Await(harness().kv().CurrentRevision());
  PutPodElsewhere("d");
  for (int i = 0; i < 9; ++i) PutPodElsewhere("c");
  PutPodElsewhere("d");
  for (int i = 0; i < 30; ++i) PutPodElsewhere("e");
  const auto listed = *Await(harness().kv().CurrentRevision());
  harness().failing().Damage(compacted + 1);  // also the value before the second change of d
  harness().failing().Restore();
  PassUntil([&] { return cacher().metrics().initializations >= 2 && cacher().Ready(); });
  EXPECT_EQ(cacher().metrics().initializations, 2u);
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a b c d e");
  auto old = Watch("/pods", {.resource_version = std::to_string(compacted)});
  EXPECT_EQ(old->NextText().substr(0, 9), "ERROR 410");
  auto recent = Watch("/pods", {.resource_version = std::to_string(listed - 5)});
  EXPECT_EQ(recent->NextText(), "MODIFIED default/e@" + std::to_string(listed - 4)) << "what can be read is kept";
}

TEST_F(CacherTest, OverwrittenDamagedChangeCausesARelist) {
  Create({.name = "a"});
  auto watch = Watch("/pods", {.resource_version = "0"});
  watch->NextText();
  harness().failing().Damage(*Await(harness().kv().CurrentRevision()) + 1);
  PutPodElsewhere("b");
  PutPodElsewhere("b");
  PassUntil([&] { return cacher().metrics().initializations >= 2 && cacher().Ready(); });
  EXPECT_EQ(watch->NextText(), "END");
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a b");
}

TEST_F(CacherTest, BrokenWatchResumesAndKeepsWatchers) {
  Create({.name = "a"});
  auto watch = Watch("/pods", {.resource_version = "0"});
  EXPECT_EQ(watch->NextText().substr(0, 15), "ADDED default/a");
  harness().failing().Disconnect();
  EXPECT_TRUE(watch->Pending());
  harness().failing().Restore();
  harness().failing().Disconnect();
  PutPodElsewhere("b");  // another server writes meanwhile
  harness().failing().Restore();
  PassUntilEvent(*watch);
  EXPECT_EQ(watch->NextText().substr(0, 15), "ADDED default/b");
  EXPECT_TRUE(cacher().Ready());
  EXPECT_EQ(cacher().metrics().initializations, 1u);
}

TEST_F(CacherTest, CompactionDuringAnOutageCausesARelist) {
  Create({.name = "a"});
  auto watch = Watch("/pods", {.resource_version = "0"});
  watch->NextText();
  harness().failing().Disconnect();
  EXPECT_TRUE(watch->Pending());
  for (int i = 0; i < 5; ++i) PutPodElsewhere("b");
  Compact();
  harness().failing().Restore();
  PassUntil([&] { return cacher().metrics().initializations >= 2 && cacher().Ready(); });
  EXPECT_EQ(watch->NextText(), "END");
  EXPECT_EQ(Names(List("/pods", {})), "a b");
}

// The cache's history is longer than the store's, but a client must get 410: its list is no longer consistent.
TEST_F(CacherTest, PagesOfACompactedRevisionExpire) {
  for (const char* name : {"a", "b", "c"}) Create({.name = name});
  const auto first = List("/pods/default", {.predicate = {.limit = 1}});
  Create({.name = "d"});
  Compact();
  cacher().Compacted(static_cast<std::uint64_t>(*Await(harness().kv().CurrentRevision())));
  const auto second =
      Await(cacher().GetList("/pods/default", {.predicate = {.limit = 1, .continue_token = first.continue_token}}));
  ASSERT_FALSE(second.ok());
  ASSERT_TRUE(second.error().status);
  const std::string again = second.error().status->fields().continue_token;
  EXPECT_EQ(Names(List("/pods/default", {.predicate = {.limit = 5, .continue_token = again}})), "b c d");
}

// An etcd never answers a progress request that comes while it still reads history.
TEST_F(CacherTest, UnansweredProgressRequestIsRepeated) {
  Create({.name = "a"});
  harness().failing().Disconnect();
  for (int i = 0; i < 5; ++i) PutPodElsewhere("b");
  Compact();
  PutPodElsewhere("c");
  harness().failing().LoseProgressRequests(5);
  harness().failing().Restore();
  PassUntil([&] { return cacher().metrics().initializations >= 2 && cacher().Ready(); });
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a b c");
}

// etcd reports progress of a watch only once its start revision is reached, which is after the last change.
TEST_F(CacherTest, NeedsNoProgressWhenAllHistoryIsGone) {
  Create({.name = "a"});
  harness().failing().Disconnect();
  for (int i = 0; i < 5; ++i) PutPodElsewhere("b");
  Compact();
  harness().failing().LoseProgressRequests(1'000'000);
  harness().failing().Restore();
  PassUntil([&] { return cacher().metrics().initializations >= 2 && cacher().Ready(); });
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "a b");
  harness().failing().LoseProgressRequests(0);
}

// Cache and store are compared at the cache's revision.
TEST_F(CacherTest, ComparesItselfWithTheStore) {
  for (int i = 0; i < 30; ++i) Create({.name = "p" + std::to_string(i), .name_space = i % 2 == 0 ? "a" : "a-b"});
  Delete("p4", "a");
  Sync();
  EXPECT_EQ(Await(cacher().CheckConsistency()).value(), true);
  EXPECT_EQ(Await(cacher().GetStats())->object_count, 29);
}

TEST_F(CacherTest, NotReady) {
  harness().failing().Disconnect();
  for (int i = 0; i < 5; ++i) PutPodElsewhere("b");
  Compact();
  harness().failing().Restore();
  harness().failing().Hold();  // it lists, and then never hears anything
  PassUntil([&] { return !cacher().Ready(); });
  auto list = Await(cacher().GetList("/pods", {.resource_version = "0"}));
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().status->code(), 429);
  EXPECT_EQ(list.error().status->message().substr(0, 27), "storage is (re)initializing");
  EXPECT_GE(list.error().status->details()->retry_after_seconds, 1);
  EXPECT_FALSE(Await(cacher().Watch("/pods", {.resource_version = "0"})).ok());
  // Paged lists go to the store.
  EXPECT_EQ(Names(List("/pods", {.predicate = {.limit = 5}})), "b");
  EXPECT_TRUE(Await(cacher().Get("/pods/default/b", {.resource_version = "0"})).ok());
  harness().failing().Release();
  PassUntil([&] { return cacher().Ready(); });
  EXPECT_EQ(Names(List("/pods", {.resource_version = "0"})), "b");
}

TEST_F(CacherTest, Bookmarks) {
  Create({.name = "a"});
  Sync();
  auto watch = Watch("/pods", {.resource_version = std::to_string(cacher().resource_version()),
                               .predicate = {.allow_watch_bookmarks = true}});
  auto plain = Watch("/pods", {.resource_version = std::to_string(cacher().resource_version())});
  EXPECT_TRUE(watch->Pending());
  EXPECT_TRUE(plain->Pending());
  PutElsewhere("/registry/secrets/x");
  Sync();  // progress moves the cache on although no pod changed
  harness().Pass(std::chrono::seconds(61));
  EXPECT_EQ(watch->NextText(), "BOOKMARK @" + std::to_string(cacher().resource_version()));
  EXPECT_TRUE(watch->Pending());
  EXPECT_TRUE(plain->Pending());
  // Never before an event that is older.
  harness().Pass(std::chrono::seconds(61));
  const auto b = Create({.name = "b"});
  Sync();
  EXPECT_EQ(watch->NextText(), "ADDED default/b@" + std::to_string(b->resource_version()));
  EXPECT_EQ(watch->NextText().substr(0, 8), "BOOKMARK");
}

TEST_F(CacherTest, BookmarkBeforeTheDeadline) {
  const auto deadline = harness().clock().Monotonic() + std::chrono::seconds(30);
  Sync();
  auto watch = Watch("/pods", {.resource_version = std::to_string(cacher().resource_version()),
                               .predicate = {.allow_watch_bookmarks = true},
                               .deadline = deadline});
  harness().Pass(std::chrono::seconds(27));
  EXPECT_TRUE(watch->Pending());
  harness().Pass(std::chrono::seconds(2));
  EXPECT_EQ(watch->NextText().substr(0, 8), "BOOKMARK");
}

TEST_F(CacherTest, SlowWatcherFallsOffTheRing) {
  Start({.trigger_field = "spec.nodeName", .ring = {.capacity_min = 10, .capacity_max = 20}});
  const auto a = Create({.name = "a"});
  Sync();
  auto slow = Watch("/pods", {.resource_version = std::to_string(a->resource_version())});
  auto by_node = Watch("/pods", {.resource_version = std::to_string(a->resource_version()),
                                 .predicate = Select("", "spec.nodeName=n1")});
  auto idle = Watch("/pods", {.resource_version = std::to_string(a->resource_version()),
                              .predicate = Select("", "spec.nodeName=n2")});
  auto elsewhere =
      Watch("/pods/other", {.resource_version = std::to_string(a->resource_version()), .scope_namespace = "other"});
  EXPECT_TRUE(idle->Pending());
  EXPECT_TRUE(elsewhere->Pending());
  for (int i = 0; i < 50; ++i) Update({.name = "a", .node = "n1", .data = std::to_string(i)});
  Sync();
  EXPECT_EQ(slow->NextText().substr(0, 35), "ERROR 410 too old resource version:");
  EXPECT_EQ(slow->NextText(), "END");
  EXPECT_EQ(by_node->NextText().substr(0, 9), "ERROR 410");
  // Nothing that concerns these was dropped, however old their place in the ring is.
  EXPECT_TRUE(idle->Pending());
  EXPECT_TRUE(elsewhere->Pending());
  const auto b = Create({.name = "b", .node = "n2"});
  EXPECT_EQ(idle->NextText(), "ADDED default/b@" + std::to_string(b->resource_version()));
  EXPECT_EQ(cacher().figures().events, 20u);
  // A new watch from that revision fails at once.
  auto late = Watch("/pods", {.resource_version = std::to_string(a->resource_version())});
  EXPECT_EQ(late->NextText().substr(0, 35), "ERROR 410 too old resource version:");
  EXPECT_EQ(late->NextText(), "END");
}

TEST_F(CacherTest, HistoryIsBoundedByBytes) {
  Start(CacherHarness::DefaultOptions(), 100'000);
  Create({.name = "a"});
  for (int i = 0; i < 500; ++i) Update({.name = "a", .data = std::string(1000, static_cast<char>('a' + i % 26))});
  Sync();
  EXPECT_LE(harness().budget().bytes, 100u * 2000u);
  EXPECT_LT(cacher().figures().events, 200u);
  EXPECT_GE(cacher().figures().events, 100u);
}

// The budget is shared: a resource that was busy once does not keep the others at their least history for ever.
TEST_F(CacherTest, IdleResourceGivesItsHistoryBudgetToOthers) {
  constexpr std::size_t kBudget = 1'000'000;
  Start({.ring = {.capacity_min = 10}}, kBudget);
  const auto first = Create({.name = "a", .data = std::string(1000, 'a')});
  for (int i = 0; i < 1200; ++i) Update({.name = "a", .data = std::string(1000, static_cast<char>('a' + i % 26))});
  Sync();
  ASSERT_GT(harness().budget().bytes, kBudget * 9 / 10);
  const std::string now = std::to_string(cacher().resource_version());
  auto idle = Watch("/pods", {.resource_version = now});
  EXPECT_TRUE(idle->Pending());
  const auto events = cacher().figures().events;
  harness().Pass(std::chrono::seconds(70));
  EXPECT_EQ(cacher().figures().events, events) << "younger than the window";
  harness().Pass(std::chrono::seconds(10));
  EXPECT_LE(harness().budget().bytes, kBudget / 2);
  EXPECT_GT(harness().budget().bytes, kBudget / 4) << "no more than needed";

  EventRing busy({.capacity_min = 10}, harness().budget());
  for (std::uint64_t revision = 1; revision <= 200; ++revision) {
    auto event = base::MakeRef<CacheEvent>();
    event->object = event->previous = first;
    event->revision = revision;
    event->recorded = harness().clock().Monotonic();
    busy.Append(std::move(event));
  }
  EXPECT_EQ(busy.size(), 200u);
  auto late = Watch("/pods", {.resource_version = std::to_string(first->resource_version())});
  EXPECT_EQ(late->NextText().substr(0, 9), "ERROR 410");
  const auto b = Create({.name = "b"});
  EXPECT_EQ(idle->NextText(), "ADDED default/b@" + std::to_string(b->resource_version()));
}

// The oldest events of all resources go first, also when they are younger than the window.
TEST_F(CacherTest, BusyResourceEvictsOlderEvents) {
  constexpr std::size_t kBudget = 1'000'000;
  Start({.ring = {.capacity_min = 10}}, kBudget);
  const auto first = Create({.name = "a", .data = std::string(1000, 'a')});
  for (int i = 0; i < 1200; ++i) Update({.name = "a", .data = std::string(1000, static_cast<char>('a' + i % 26))});
  Sync();
  const auto events = cacher().figures().events;
  harness().Pass(std::chrono::seconds(5));

  Dispatcher other(harness().clock(), harness().budget(), {.ring = {.capacity_min = 10}});
  constexpr std::uint64_t kChanges = 300;
  for (std::uint64_t revision = 1; revision <= kChanges; ++revision) {
    auto event = base::MakeRef<CacheEvent>();
    event->object = event->previous = first;
    event->revision = revision;
    event->recorded = harness().clock().Monotonic();
    other.Append({std::move(event)}, base::MakeRef<Snapshot>(ObjectTree(), IndexTree(), revision));
  }
  EXPECT_EQ(other.figures().events, kChanges);
  EXPECT_LT(cacher().figures().events, events);
  EXPECT_GE(cacher().figures().events, 10u);
  EXPECT_LE(harness().budget().used(), kBudget);
}

TEST_F(CacherTest, ListByTriggerReadsOnlyMatchingObjects) {
  for (int i = 0; i < 200; ++i)
    Create(
        {.name = "p" + std::to_string(i), .name_space = i % 2 == 0 ? "a" : "b", .node = "n" + std::to_string(i % 20)});
  Sync();
  const auto before = cacher().metrics().list_fetched_objects.load();
  EXPECT_EQ(List("/pods", {.resource_version = "0", .predicate = Select("", "spec.nodeName=n4")}).items.size(), 10u);
  EXPECT_EQ(cacher().metrics().list_fetched_objects - before, 10u);
  EXPECT_EQ(List("/pods/a", {.resource_version = "0", .predicate = Select("", "spec.nodeName=n4")}).items.size(), 10u);
  EXPECT_EQ(List("/pods/b", {.resource_version = "0", .predicate = Select("", "spec.nodeName=n4")}).items.size(), 0u);
  Update({.name = "p4", .name_space = "a", .node = "n5"});
  Sync();
  EXPECT_EQ(List("/pods", {.resource_version = "0", .predicate = Select("", "spec.nodeName=n4")}).items.size(), 9u);
}

// 5,000 watchers by node and 1,000 changes: each sees exactly its own, and no other is woken.
TEST_F(CacherTest, OnlyMatchingWatchersAreWoken) {
  constexpr int kNodes = 5000;
  constexpr int kChanges = 1000;
  Sync();
  const std::string now = std::to_string(cacher().resource_version());
  std::vector<std::unique_ptr<storage::StreamReader>> watchers;
  for (int i = 0; i < kNodes; ++i) {
    watchers.push_back(
        Watch("/pods", {.resource_version = now, .predicate = Select("", "spec.nodeName=n" + std::to_string(i))}));
    ASSERT_TRUE(watchers.back()->Pending());
  }
  const auto wakes = cacher().figures().wakes;
  for (int i = 0; i < kChanges; ++i) Create({.name = "p" + std::to_string(i), .node = "n" + std::to_string(i * 3)});
  Sync();
  EXPECT_EQ(cacher().figures().wakes - wakes, static_cast<std::uint64_t>(kChanges));
  for (int i = 0; i < kNodes; ++i) {
    const bool concerned = i % 3 == 0 && i / 3 < kChanges;
    ASSERT_EQ(watchers[static_cast<std::size_t>(i)]->woken(), concerned ? 1u : 0u) << i;
    if (concerned)
      ASSERT_EQ(watchers[static_cast<std::size_t>(i)]->NextText().substr(0, 14),
                ("ADDED default/p" + std::to_string(i / 3)).substr(0, 14));
    ASSERT_TRUE(watchers[static_cast<std::size_t>(i)]->Pending()) << i;
  }
}

// A selector without an index is evaluated at the change; watchers that do not match are not woken.
TEST_F(CacherTest, LabelSelectorsAreMatchedBeforeWaking) {
  Sync();
  const std::string now = std::to_string(cacher().resource_version());
  auto web = Watch("/pods", {.resource_version = now, .predicate = Select("app=web", "")});
  auto db = Watch("/pods", {.resource_version = now, .predicate = Select("app=db", "")});
  EXPECT_TRUE(web->Pending());
  EXPECT_TRUE(db->Pending());
  for (int i = 0; i < 10; ++i) Create({.name = "p" + std::to_string(i), .app = "web"});
  Sync();
  EXPECT_GE(web->woken(), 1u);
  EXPECT_EQ(db->woken(), 0u);
}

TEST_F(CacherTest, ManyWatchersSeeTheSameOrder) {
  constexpr int kWatchers = 100;
  constexpr int kWriters = 4;
  constexpr int kWrites = 100;
  Sync();
  const std::string now = std::to_string(cacher().resource_version());
  std::vector<std::unique_ptr<storage::StreamReader>> watchers;
  for (int i = 0; i < kWatchers; ++i) watchers.push_back(Watch("/pods", {.resource_version = now}));
  std::vector<std::vector<std::string>> seen(kWatchers);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kWatchers; i += 4) {
        for (int n = 0; n < kWriters * kWrites; ++n)
          seen[static_cast<std::size_t>(i)].push_back(watchers[static_cast<std::size_t>(i)]->NextText());
      }
    });
  }
  for (int t = 0; t < kWriters; ++t) {
    threads.emplace_back([&, t] {
      for (int n = 0; n < kWrites; ++n) {
        const std::string name = "w" + std::to_string(t) + "-" + std::to_string(n % 10);
        const bool made = n / 10 % 2 == 0;
        made ? static_cast<void>(Create({.name = name})) : Delete(name);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int i = 1; i < kWatchers; ++i) ASSERT_EQ(seen[static_cast<std::size_t>(i)], seen[0]);
}

// A new process on the same store: watchers go on from where they were, without a list and without a gap.
TEST_F(CacherTest, WatchersResumeAcrossARestart) {
  constexpr int kWatchers = 1000;
  for (int i = 0; i < 50; ++i) Create({.name = "p" + std::to_string(i), .node = "n1"});
  const auto middle = Create({.name = "middle"});
  for (int i = 0; i < 50; ++i) Update({.name = "p" + std::to_string(i), .node = i % 2 == 0 ? "n2" : "n1", .data = "x"});
  for (int i = 0; i < 10; ++i) Delete("p" + std::to_string(i));
  const auto last = Create({.name = "last"});
  Sync();
  const std::string from = std::to_string(middle->resource_version());
  std::vector<std::string> want;
  auto before = Watch("/pods", {.resource_version = from});
  for (int i = 0; i < 61; ++i) want.push_back(before->NextText());
  auto node_before = Watch("/pods", {.resource_version = from, .predicate = Select("", "spec.nodeName=n2")});
  std::vector<std::string> want_node;
  for (int i = 0; i < 30; ++i) want_node.push_back(node_before->NextText());
  before.reset();
  node_before.reset();

  Restart();
  const auto ranges = harness().failing().ranges();
  std::vector<std::unique_ptr<storage::StreamReader>> watchers;
  for (int i = 0; i < kWatchers; ++i) watchers.push_back(Watch("/pods", {.resource_version = from}));
  for (auto& watch : watchers) {
    for (const std::string& text : want) ASSERT_EQ(watch->NextText(), text);
    ASSERT_TRUE(watch->Pending());
  }
  auto node = Watch("/pods", {.resource_version = from, .predicate = Select("", "spec.nodeName=n2")});
  for (const std::string& text : want_node) ASSERT_EQ(node->NextText(), text);
  EXPECT_EQ(harness().failing().ranges(), ranges);
  EXPECT_EQ(cacher().metrics().initializations, 1u);
  // Lists at old revisions are there too.
  EXPECT_EQ(List("/pods", {.resource_version = from, .resource_version_match = "Exact"}).items.size(), 51u);
  EXPECT_EQ(harness().failing().ranges(), ranges);
  (void)last;
}

TEST_F(CacherTest, RestartAfterCompactionServesTheRemainingHistory) {
  const auto a = Create({.name = "a"});
  const auto b = Create({.name = "b"});
  Compact();
  const auto c = Create({.name = "c"});
  const auto changed = Update({.name = "a", .data = "2"});
  Restart();
  auto old = Watch("/pods", {.resource_version = std::to_string(a->resource_version())});
  EXPECT_EQ(old->NextText().substr(0, 9), "ERROR 410");
  auto fresh = Watch("/pods", {.resource_version = std::to_string(b->resource_version())});
  EXPECT_EQ(fresh->NextText(), "ADDED default/c@" + std::to_string(c->resource_version()));
  EXPECT_EQ(fresh->NextText(), "MODIFIED default/a@" + std::to_string(changed->resource_version()));
}

// The first change that is replayed is the one that was compacted to: the store has no value before it any more.
TEST_F(CacherTest, ReplayFromTheCompactRevisionDropsNoChange) {
  for (const bool deletion : {true, false}) {
    SCOPED_TRACE(deletion ? "DELETE" : "PUT");
    Start(CacherHarness::DefaultOptions());
    Create({.name = "a"});
    const auto b = Create({.name = "b"});
    if (deletion) {
      Delete("a");
    } else {
      Update({.name = "a", .data = "2"});
    }
    Compact();
    const auto c = Create({.name = "c"});
    ASSERT_EQ(c->resource_version(), b->resource_version() + 2);
    Restart({.trigger_field = "spec.nodeName", .replay_revisions_max = 2});

    const std::string before = std::to_string(b->resource_version());
    auto old = Watch("/pods", {.resource_version = before});
    EXPECT_EQ(old->NextText().substr(0, 9), "ERROR 410");
    const auto list = Await(cacher().GetList("/pods", {.resource_version = before, .resource_version_match = "Exact"}));
    EXPECT_FALSE(list.ok()) << Names(*list);
    auto fresh = Watch("/pods", {.resource_version = std::to_string(b->resource_version() + 1)});
    EXPECT_EQ(fresh->NextText(), "ADDED default/c@" + std::to_string(c->resource_version()));
  }
}

}  // namespace
}  // namespace keelson::cacher
