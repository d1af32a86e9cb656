// The edges at which stores have been wrong: something else happens in the middle of catching up, of a snapshot, of a
// compaction, of the end of a lease. Fail points say where the middle is.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>

#include "async/io_pool.h"
#include "base/failpoint.h"
#include "base/fake_clock.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "kv/rocks/tools.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::kv::rocks {
namespace {

// Armed while it lives. The action runs at the first pass only.
class AtFirstPass {
 public:
  AtFirstPass(std::string name, std::function<bool()> action) : name_(std::move(name)) {
    base::Failpoints::Arm(name_, [this, action = std::move(action)] { return passes_++ == 0 && action(); });
  }
  ~AtFirstPass() { base::Failpoints::Arm(name_, nullptr); }
  int passes() const { return passes_; }

 private:
  const std::string name_;
  std::atomic<int> passes_{0};
};

class Edges : public ::testing::Test {
 protected:
  void SetUp() override { Reopen(); }
  // Values are never resident, so that everything that needs one reads it from the disk.
  void Reopen() {
    store_.reset();
    Options options;
    options.dir = temp_.path() + "/store";
    options.resident_bytes_max = 0;
    options.clock = &clock_;
    auto store = Open(std::move(options));
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = *std::move(store);
  }
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.executor(0), std::move(task), asio::use_future).get();
  }
  // For actions of fail points, which run on the threads of the others.
  template <class T>
  T AwaitElsewhere(Awaitable<T> task) {
    return asio::co_spawn(elsewhere_.executor(0), std::move(task), asio::use_future).get();
  }
  Revision Put(const std::string& key, const std::string& value) {
    TxnRequest request{.success = {Op::Put({.key = key, .value = SharedBytes(value)})}};
    auto answer = AwaitElsewhere(store_->Txn(std::move(request)));
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? answer->revision : 0;
  }
  Revision Fill(const std::string& value, int keys = 1200) {
    Revision last = 0;
    for (int i = 0; i < keys; i += 100) {
      TxnRequest request;
      for (int j = i; j < i + 100; ++j)
        request.success.push_back(Op::Put({.key = "/k" + std::to_string(j), .value = SharedBytes(value)}));
      auto answer = AwaitElsewhere(store_->Txn(std::move(request)));
      EXPECT_TRUE(answer.ok());
      if (answer.ok()) last = answer->revision;
    }
    return last;
  }
  bool CompactNow() {
    auto now = AwaitElsewhere(store_->CurrentRevision());
    return now.ok() && AwaitElsewhere(store_->Compact(*now, true)).ok();
  }
  std::map<std::string, std::string> All(Store& store) {
    RangeRequest request{.key = "/", .range_end = "0"};
    auto answer = Await(store.Range(std::move(request)));
    EXPECT_TRUE(answer.ok());
    std::map<std::string, std::string> all;
    for (const KeyValue& kv : answer->kvs) all[kv.key] = std::string(kv.value.view());
    return all;
  }

  TempDir temp_;
  base::FakeClock clock_;
  async::IOPool io_{1};
  async::IOPool elsewhere_{1};
  std::unique_ptr<mvcc::EmbeddedStore> store_;
};

// The next start reads files and no log, which it would hold in memory.
TEST_F(Edges, CloseFlushesALargeLog) {
  const auto files = [&](std::string_view ending) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(temp_.path()))
      count += entry.path().string().ends_with(ending) ? 1 : 0;
    return count;
  };
  Fill("small", 100);
  Reopen();
  EXPECT_EQ(files(".sst"), 0U) << "little is left to the log";
  Fill(std::string(2000, 'x'));
  const auto before = All(*store_);
  Reopen();
  EXPECT_GT(files(".sst"), 0U);
  EXPECT_EQ(All(*store_), before);
}

TEST_F(Edges, CompactionWhileAWatchCatchesUp) {
  Fill("old", 100);
  auto watch = store_->Watch({.key = "/", .range_end = "0", .start_revision = 2});
  const AtFirstPass point("kv/watch/read-values", [&] {
    Fill("new", 100);
    EXPECT_TRUE(CompactNow());
    return false;
  });
  // Events found before are delivered with their values of then; the following history is compacted.
  auto response = Await(watch->Next());
  ASSERT_TRUE(response.ok()) << response.error().message;
  ASSERT_EQ(response->events.size(), 100U);
  for (const Event& event : response->events) EXPECT_EQ(event.kv.value.view(), "old");
  EXPECT_EQ(point.passes(), 1);
  auto next = Await(watch->Next());
  // Fill() was one revision, which is the compact revision itself: that may still be watched.
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next->events.size(), 100U);
  EXPECT_EQ(next->events[0].kv.value.view(), "new");
}

TEST_F(Edges, CompactionBeyondAWatchThatCatchesUp) {
  Fill("old", 100);
  auto watch = store_->Watch({.key = "/", .range_end = "0", .start_revision = 2});
  const AtFirstPass point("kv/watch/read-values", [&] {
    Fill("new", 100);
    Put("/last", "1");
    EXPECT_TRUE(CompactNow());
    return false;
  });
  ASSERT_TRUE(Await(watch->Next()).ok());
  auto next = Await(watch->Next());
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.error().code, ErrorCode::kCompacted);
  EXPECT_EQ(next.error().compact_revision, 4);
}

TEST_F(Edges, WatchThatIsCancelledWhileItCatchesUp) {
  Fill("old", 100);
  auto watch = store_->Watch({.key = "/", .range_end = "0", .start_revision = 2});
  const AtFirstPass point("kv/watch/read-values", [&] {
    watch->Cancel();
    return false;
  });
  auto response = Await(watch->Next());
  if (!response.ok()) EXPECT_EQ(response.error().code, ErrorCode::kCanceled);
  EXPECT_EQ(Await(watch->Next()).error().code, ErrorCode::kCanceled);
}

TEST_F(Edges, WritesBetweenCommitAndPublicationAreNotSeenEarly) {
  Put("/a", "1");
  auto watch = store_->Watch({.key = "/a", .start_revision = 3});
  const AtFirstPass point("kv/commit/before-publish", [&] {
    // Durable, but not acknowledged: not visible.
    RangeRequest request{.key = "/a"};
    auto answer = asio::co_spawn(elsewhere_.executor(0), store_->Range(std::move(request)), asio::use_future).get();
    EXPECT_EQ(answer->kvs.at(0).value.view(), "1");
    EXPECT_EQ(answer->revision, 2);
    return false;
  });
  TxnRequest request{.success = {Op::Put({.key = "/a", .value = SharedBytes("2")})}};
  ASSERT_TRUE(Await(store_->Txn(std::move(request))).ok());
  EXPECT_EQ(point.passes(), 1);
  EXPECT_EQ(Await(watch->Next())->events.at(0).kv.value.view(), "2");
}

TEST_F(Edges, ReadOfOldRevisionsBetweenForgettingInMemoryAndOnDisk) {
  Fill("old", 300);
  const Revision kept = Fill("new", 300);
  const AtFirstPass point("kv/compact/before-forget", [&] {
    RangeRequest request{.key = "/k1", .revision = kept};
    auto answer = asio::co_spawn(elsewhere_.executor(0), store_->Range(std::move(request)), asio::use_future).get();
    EXPECT_TRUE(answer.ok());
    if (answer.ok()) EXPECT_EQ(answer->kvs.at(0).value.view(), "new");
    return false;
  });
  ASSERT_TRUE(Await(store_->Compact(kept, true)).ok());
  EXPECT_GE(point.passes(), 1);
  Reopen();
  EXPECT_EQ(All(*store_).size(), 300U);
}

TEST_F(Edges, SnapshotIsOfOneRevision) {
  Fill("before");
  const auto before = All(*store_);
  const std::string path = temp_.path() + "/snapshot";
  const AtFirstPass point("kv/snapshot/page", [&] {
    Fill("after");
    return false;
  });
  ASSERT_TRUE(Await(snapshot::WriteFile(*store_, path)).ok());
  EXPECT_GT(point.passes(), 1);
  ASSERT_TRUE(Restore(path, temp_.path() + "/restored").ok());
  auto restored = Open({.dir = temp_.path() + "/restored"});
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(All(**restored), before);
}

TEST_F(Edges, SnapshotOutlivesCompactions) {
  Fill("before");
  const auto before = All(*store_);
  const Revision then = *Await(store_->CurrentRevision());
  const std::string path = temp_.path() + "/snapshot";
  const AtFirstPass point("kv/snapshot/page", [&] {
    Fill("after");
    EXPECT_TRUE(CompactNow());
    return false;
  });
  const auto written = Await(snapshot::WriteFile(*store_, path));
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(written->revision, then);
  ASSERT_TRUE(Restore(path, temp_.path() + "/restored").ok());
  auto restored = Open({.dir = temp_.path() + "/restored"});
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(All(**restored), before);
  // Versions kept for the snapshot are dropped now, and were never visible to watches.
  auto watch = store_->Watch({.key = "/", .range_end = "0", .start_revision = then});
  EXPECT_EQ(Await(watch->Next()).error().code, ErrorCode::kCompacted);
  watch.reset();
  EXPECT_TRUE(Put("/last", "1") > 0 && CompactNow());
  RangeRequest old{.key = "/k1", .revision = then};
  EXPECT_EQ(Await(store_->Range(std::move(old))).error().code, ErrorCode::kCompacted);
  const auto live = All(*store_);
  Reopen();
  EXPECT_EQ(All(*store_), live);
}

TEST_F(Edges, SnapshotThatFailsLeavesTheOneBefore) {
  Fill("before");
  const std::string path = temp_.path() + "/snapshot";
  ASSERT_TRUE(Await(snapshot::WriteFile(*store_, path)).ok());
  Fill("after");
  {
    const AtFirstPass point("kv/snapshot/before-rename", [] { return true; });
    EXPECT_FALSE(Await(snapshot::WriteFile(*store_, path)).ok());
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  }
  ASSERT_TRUE(Restore(path, temp_.path() + "/restored").ok());
  auto restored = Open({.dir = temp_.path() + "/restored"});
  ASSERT_TRUE(restored.ok());
  EXPECT_EQ(All(**restored).at("/k7"), "before");
}

TEST_F(Edges, LeaseEndsWhileItsKeyIsWritten) {
  auto lease = Await(store_->LeaseGrant(60, 7));
  ASSERT_TRUE(lease.ok());
  TxnRequest attach{.success = {Op::Put({.key = "/leased", .value = SharedBytes("1"), .lease = 7})}};
  ASSERT_TRUE(Await(store_->Txn(std::move(attach))).ok());
  // The revocation is in the queue behind a commit that is under way; the put is behind the revocation.
  std::future<Result<Revision>> revoked;
  std::future<Result<TxnResponse>> put;
  {
    const AtFirstPass point("kv/rocks/after-sync", [&] {
      revoked = asio::co_spawn(elsewhere_.executor(0), store_->LeaseRevoke(7), asio::use_future);
      TxnRequest again{.success = {Op::Put({.key = "/leased", .value = SharedBytes("2")})}};
      put = asio::co_spawn(elsewhere_.executor(0), store_->Txn(std::move(again)), asio::use_future);
      return false;
    });
    TxnRequest other{.success = {Op::Put({.key = "/other"})}};
    ASSERT_TRUE(Await(store_->Txn(std::move(other))).ok());
  }
  ASSERT_TRUE(revoked.get().ok());
  ASSERT_TRUE(put.get().ok());
  EXPECT_EQ(All(*store_).at("/leased"), "2");
  Reopen();
  EXPECT_EQ(All(*store_).at("/leased"), "2");
}

// While it lives the writer can read no value from the disk. Watches read theirs another way.
class UnreadableValues {
 public:
  UnreadableValues() {
    base::Failpoints::Arm("kv/rocks/read-value", [] { return true; });
  }
  ~UnreadableValues() { base::Failpoints::Arm("kv/rocks/read-value", nullptr); }
};

// Events as one text, those of one revision in order: "D/a@5(old) P/b@6".
std::string EventText(const WatchResponse& response) {
  std::string text;
  for (const Event& event : response.events) {
    text += (text.empty() ? "" : " ") + std::string(event.type == Event::Type::kDelete ? "D" : "P") + event.kv.key +
            "@" + std::to_string(event.kv.mod_revision);
    if (event.prev_kv) text += "(" + std::string(event.prev_kv->value.view()) + ")";
  }
  return text;
}

TEST_F(Edges, UnreadableOldValueDoesNotBlockWrites) {
  Put("/put", "old");
  Put("/deleted", "old");
  auto watch = store_->Watch({.key = "/", .range_end = "0", .prev_kv = true});
  const UnreadableValues unreadable;
  EXPECT_EQ(Put("/put", "new"), 4);
  TxnRequest remove{.success = {Op::DeleteRange({.key = "/deleted"})}};
  EXPECT_TRUE(Await(store_->Txn(std::move(remove))).ok());
  // An answer that has to carry the value fails, and nothing of the transaction is applied.
  TxnRequest tells{.success = {Op::Put({.key = "/other", .value = SharedBytes("1")}),
                               Op::DeleteRange({.key = "/put", .prev_kv = true})}};
  EXPECT_EQ(Await(store_->Txn(std::move(tells))).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Put("/last", "1"), 6);
  const auto response = Await(watch->Next());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(EventText(*response), "P/put@4(old) D/deleted@5(old) P/last@6");
  const std::map<std::string, std::string> all{{"/put", "new"}, {"/last", "1"}};
  EXPECT_EQ(All(*store_), all);
  watch.reset();
  Reopen();
  EXPECT_EQ(All(*store_), all);
}

TEST_F(Edges, LeaseIsRevokedWholeWhenAnOldValueIsUnreadable) {
  for (const bool expires : {false, true}) {
    SCOPED_TRACE(expires ? "expiry" : "revocation");
    ASSERT_TRUE(Await(store_->LeaseGrant(60, 7)).ok());
    for (const char* key : {"/a", "/b"}) {
      TxnRequest attach{.success = {Op::Put({.key = key, .value = SharedBytes("old"), .lease = 7})}};
      ASSERT_TRUE(Await(store_->Txn(std::move(attach))).ok());
    }
    const Revision before = Put("/keep", "1");
    auto watch = store_->Watch({.key = "/", .range_end = "0", .prev_kv = true});
    const UnreadableValues unreadable;
    if (expires) {
      clock_.Advance(std::chrono::seconds(61));
      store_->Tick();
    } else {
      EXPECT_EQ(*Await(store_->LeaseRevoke(7)), before + 1);
    }
    const auto response = Await(watch->Next());
    ASSERT_TRUE(response.ok()) << response.error().message;
    const std::string at = "@" + std::to_string(before + 1) + "(old)";
    EXPECT_EQ(EventText(*response), "D/a" + at + " D/b" + at);
    EXPECT_EQ(Put("/c", "1"), before + 2);
    const auto all = All(*store_);
    EXPECT_FALSE(all.contains("/a") || all.contains("/b"));
    EXPECT_TRUE(Await(store_->Leases())->empty());
    watch.reset();
    Reopen();
    EXPECT_EQ(All(*store_), all);
    EXPECT_TRUE(Await(store_->Leases())->empty());
  }
}

TEST_F(Edges, SnapshotHasTheLeaseOfEveryKey) {
  for (const LeaseID id : {7, 8}) {
    ASSERT_TRUE(Await(store_->LeaseGrant(60, id)).ok());
    TxnRequest attach{.success = {Op::Put({.key = "/leased" + std::to_string(id), .lease = id})}};
    ASSERT_TRUE(Await(store_->Txn(std::move(attach))).ok());
  }
  // Leases 7 and 8 are due, but nothing wakes the writer, so their keys still exist.
  clock_.Advance(std::chrono::seconds(61));
  const std::string path = temp_.path() + "/snapshot";
  const auto info = Await(snapshot::WriteFile(*store_, path));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->keys, 2);
  EXPECT_EQ(info->leases, 2);
  const std::string dir = temp_.path() + "/restored";
  ASSERT_TRUE(Restore(path, dir).ok());
  Options options;
  options.dir = dir;
  options.clock = &clock_;
  auto restored = Open(std::move(options));
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_EQ(Await((*restored)->Leases())->size(), 2U);
  EXPECT_EQ(All(**restored).size(), 2U);
  auto watch = (*restored)->Watch({.key = "/", .range_end = "0"});
  clock_.Advance(std::chrono::seconds(2));
  (*restored)->Tick();
  const auto response = Await(watch->Next());
  ASSERT_TRUE(response.ok());
  EXPECT_TRUE(All(**restored).empty());
}

// The lease as a client sees it: its keys, or that it does not exist.
std::string LeaseText(const Result<Lease>& lease) {
  if (!lease.ok()) return lease.error().message;
  if (lease->remaining_ttl < 0) return "none";
  std::string text = "keys:";
  for (const std::string& key : lease->keys) text += " " + key;
  return text;
}

TEST_F(Edges, LeasesAreShownAfterTheirCommit) {
  const auto shown = [&](LeaseID id) { return LeaseText(AwaitElsewhere(store_->LeaseTimeToLive(id, true))); };
  const auto listed = [&] { return *AwaitElsewhere(store_->Leases()); };
  ASSERT_TRUE(Await(store_->LeaseGrant(60, 7)).ok());
  {
    const AtFirstPass point("kv/commit/before-write", [&] {
      EXPECT_EQ(shown(8), "none");
      EXPECT_EQ(listed(), std::vector<LeaseID>({7}));
      return false;
    });
    ASSERT_TRUE(Await(store_->LeaseGrant(90, 8)).ok());
    EXPECT_EQ(point.passes(), 1);
  }
  EXPECT_EQ(listed(), std::vector<LeaseID>({7, 8}));
  for (const char* key : {"/a", "/b"}) {
    const AtFirstPass point("kv/commit/before-write", [&] {
      EXPECT_EQ(shown(7), key == std::string("/a") ? "keys:" : "keys: /a");
      return false;
    });
    TxnRequest attach{.success = {Op::Put({.key = key, .lease = 7})}};
    ASSERT_TRUE(Await(store_->Txn(std::move(attach))).ok());
    EXPECT_EQ(point.passes(), 1);
  }
  EXPECT_EQ(shown(7), "keys: /a /b");
  {
    const AtFirstPass point("kv/commit/before-write", [&] {
      EXPECT_EQ(shown(7), "keys: /a /b");
      EXPECT_EQ(listed(), std::vector<LeaseID>({7, 8}));
      return false;
    });
    ASSERT_TRUE(Await(store_->LeaseRevoke(7)).ok());
    EXPECT_EQ(point.passes(), 1);
  }
  EXPECT_EQ(shown(7), "none");
  EXPECT_EQ(listed(), std::vector<LeaseID>({8}));
}

// Two requests that wait while a commit is under way become one commit.
TEST_F(Edges, LeaseRevokedAndGrantedInOneCommitStays) {
  ASSERT_TRUE(Await(store_->LeaseGrant(60, 7)).ok());
  std::future<Result<Revision>> revoked;
  std::future<Result<Lease>> granted;
  const AtFirstPass point("kv/commit/before-write", [&] {
    revoked = asio::co_spawn(elsewhere_.executor(0), store_->LeaseRevoke(7), asio::use_future);
    granted = asio::co_spawn(elsewhere_.executor(0), store_->LeaseGrant(90, 7), asio::use_future);
    EXPECT_TRUE(AwaitElsewhere(store_->CurrentRevision()).ok());  // Both are in the queue now.
    return false;
  });
  Put("/a", "1");
  ASSERT_TRUE(revoked.get().ok());
  ASSERT_TRUE(granted.get().ok());
  EXPECT_EQ(point.passes(), 2);
  EXPECT_EQ(Await(store_->LeaseTimeToLive(7, false))->granted_ttl, 90);
  Reopen();
  EXPECT_EQ(Await(store_->LeaseTimeToLive(7, false))->granted_ttl, 90);
}

TEST_F(Edges, FailedRevocationKeepsKeysAndTimeOfTheLease) {
  ASSERT_TRUE(Await(store_->LeaseGrant(60, 7)).ok());
  TxnRequest attach{.success = {Op::Put({.key = "/a", .lease = 7})}};
  ASSERT_TRUE(Await(store_->Txn(std::move(attach))).ok());
  clock_.Advance(std::chrono::seconds(50));
  const AtFirstPass point("kv/commit/before-write", [] { return true; });
  EXPECT_FALSE(Await(store_->LeaseRevoke(7)).ok());
  const auto lease = Await(store_->LeaseTimeToLive(7, true));
  EXPECT_EQ(LeaseText(lease), "keys: /a");
  EXPECT_EQ(lease->remaining_ttl, 10);
}

}  // namespace
}  // namespace keelson::kv::rocks
