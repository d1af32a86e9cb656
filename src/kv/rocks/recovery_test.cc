// Writes that fail: the store says so, recovers by itself, and on disk is what readers saw.
#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <sys/mount.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>

#include "async/io_pool.h"
#include "base/failpoint.h"
#include "base/fake_clock.h"
#include "base/testing/seeded_random.h"
#include "kv/rocks/full_disk.h"
#include "kv/rocks/log_file.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "kv/rocks/tools.h"
#include "telemetry/log.h"

namespace keelson::kv::rocks {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

class Recovery : public ::testing::Test {
 protected:
  ~Recovery() override {
    for (const char* name : kFailpoints) base::Failpoints::Arm(name, nullptr);
  }
  void Reopen(std::function<void(Options&)> change = nullptr) {
    store_.reset();
    Options options;
    options.dir = dir_;
    options.resident_bytes_max = 0;
    options.clock = &clock_;
    options.deletion_reserve_bytes = 1 << 20;
    if (change) change(options);
    auto store = Open(std::move(options));
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = *std::move(store);
  }
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.executor(0), std::move(task), asio::use_future).get();
  }
  Result<Revision> Write(std::vector<Op> ops) {
    TxnRequest request{.success = std::move(ops)};
    auto answer = Await(store_->Txn(std::move(request)));
    if (!answer.ok()) return answer.error();
    return answer->revision;
  }
  Result<Revision> Put(const std::string& key, const std::string& value, LeaseID lease = 0) {
    return Write({Op::Put({.key = key, .value = SharedBytes(value), .lease = lease})});
  }
  Result<Revision> Delete(const std::string& key) { return Write({Op::DeleteRange({.key = key})}); }
  // Lets the time of a recovery come until it succeeds.
  void AwaitRecovery() {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (store_->write_health().refuses_writes) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      clock_.Advance(std::chrono::seconds(1));
      store_->Tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Everything a client can see, as one text: keys, leases, revisions and the history since the last compaction.
  std::string State() {
    const auto status = Await(store_->Status());
    std::string text = "revision " + std::to_string(status->revision) + " compacted " +
                       std::to_string(status->compact_revision) + "\n";
    RangeRequest everything{.key = std::string(1, '\0'), .range_end = std::string(1, '\0')};
    const auto all = Await(store_->Range(std::move(everything)));
    EXPECT_TRUE(all.ok()) << all.error().message;
    for (const KeyValue& kv : all->kvs) text += Text(kv) + "\n";
    auto leases = *Await(store_->Leases());
    std::ranges::sort(leases);
    for (const LeaseID id : leases) {
      const auto lease = *Await(store_->LeaseTimeToLive(id, true));
      text += "lease " + std::to_string(id) + " " + std::to_string(lease.granted_ttl);
      for (const std::string& key : lease.keys) text += " " + key;
      text += "\n";
    }
    auto watch = store_->Watch({.key = std::string(1, '\0'),
                                .range_end = std::string(1, '\0'),
                                .start_revision = std::max<Revision>(status->compact_revision, 1),
                                .prev_kv = true});
    for (Revision at = 0; at < status->revision;) {
      watch->RequestProgress();
      const auto response = Await(watch->Next());
      EXPECT_TRUE(response.ok()) << response.error().message;
      if (!response.ok()) break;
      for (const Event& event : response->events) {
        text += (event.type == Event::Type::kDelete ? "-" : "+") + Text(event.kv);
        if (event.prev_kv) text += " was " + Text(*event.prev_kv);
        text += "\n";
      }
      at = response->revision;
    }
    return text;
  }
  static std::string Text(const KeyValue& kv) {
    return kv.key + "=" + std::string(kv.value.view()) + " " + std::to_string(kv.create_revision) + " " +
           std::to_string(kv.mod_revision) + " " + std::to_string(kv.version) + " " + std::to_string(kv.lease);
  }

  static constexpr const char* kFailpoints[] = {"kv/commit/before-write", "kv/rocks/before-write",
                                                "kv/rocks/after-sync",    "kv/rocks/forget",
                                                "kv/rocks/read-value",    "kv/recover/reopen"};
  TempDir temp_;
  const std::string dir_ = temp_.path() + "/store";
  base::FakeClock clock_;
  async::IOPool io_{1};
  std::unique_ptr<mvcc::EmbeddedStore> store_;
};

// A write that is refused before, and one that is refused after it reached the disk.
TEST_F(Recovery, FailedWriteIsUndoneWithoutARestart) {
  std::atomic<int> refused{0};
  std::atomic<int> recovered{0};
  const log::ScopedSink sink([&](log::Severity, std::string_view line) {
    refused += line.contains("Store refuses writes");
    recovered += line.contains("Store recovered");
  });
  for (const char* point : {"kv/rocks/before-write", "kv/rocks/after-sync"}) {
    SCOPED_TRACE(point);
    store_.reset();  // RocksDB removes files while it is open
    std::filesystem::remove_all(dir_);
    Reopen();
    refused = recovered = 0;
    ASSERT_TRUE(Await(store_->LeaseGrant(1'000'000, 7)).ok());
    ASSERT_TRUE(Put("/a", "1", 7).ok());
    ASSERT_TRUE(Put("/b", "1").ok());
    const std::string before = State();
    base::Failpoints::Arm(point, [] { return true; });
    EXPECT_FALSE(Await(store_->LeaseRevoke(7)).ok());
    base::Failpoints::Arm(point, nullptr);
    EXPECT_TRUE(store_->write_health().refuses_writes);
    EXPECT_FALSE(Put("/b", "2").ok());
    EXPECT_EQ(State(), before) << "reads go on";
    EXPECT_EQ(refused, 1);
    AwaitRecovery();
    EXPECT_EQ(recovered, 1);
    EXPECT_EQ(store_->write_health().failures, 1U);
    EXPECT_EQ(State(), before);
    EXPECT_EQ(*Put("/b", "3"), 4) << "the revision of the write that failed";
    const std::string after = State();
    Reopen();
    EXPECT_EQ(State(), after);
  }
}

TEST_F(Recovery, ReadersFinishBeforeTheStoreIsOpenedAgain) {
  Reopen();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put("/k" + std::to_string(i), std::string(1000, 'x')).ok());
  auto watch = store_->Watch({.key = "/", .range_end = "0", .start_revision = 2});
  base::Failpoints::Arm("kv/watch/read-values", [&] {
    base::Failpoints::Arm("kv/watch/read-values", nullptr);
    base::Failpoints::Arm("kv/rocks/before-write", [] { return true; });
    TxnRequest request{.success = {Op::Put({.key = "/a"})}};
    std::promise<bool> failed;
    store_->Txn(std::move(request), [&](const auto& answer) { failed.set_value(!answer.ok()); });
    EXPECT_TRUE(failed.get_future().get());
    base::Failpoints::Arm("kv/rocks/before-write", nullptr);
    clock_.Advance(std::chrono::seconds(1));
    store_->Tick();  // The recovery waits for the watch's view.
    return false;
  });
  const auto response = Await(watch->Next());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->events.size(), 100U);
  AwaitRecovery();
  EXPECT_TRUE(Put("/a", "2").ok());
}

// Acknowledged changes that the disk lost are not made up for, and nothing is written over them.
TEST_F(Recovery, LostChangesStopTheStoreForGood) {
  Reopen();
  ASSERT_TRUE(Put("/a", "1").ok());
  const std::string copy = temp_.path() + "/copy";
  store_.reset();
  std::filesystem::copy(dir_, copy, std::filesystem::copy_options::recursive);
  Reopen();
  ASSERT_TRUE(Put("/b", "1").ok());
  base::Failpoints::Arm("kv/rocks/before-write", [] { return true; });
  EXPECT_FALSE(Put("/c", "1").ok());
  base::Failpoints::Arm("kv/rocks/before-write", nullptr);
  // The disk has an older state when the store is opened again.
  base::Failpoints::Arm("kv/recover/reopen", [&] {
    std::filesystem::remove_all(dir_ + "/db");
    std::filesystem::copy(copy + "/db", dir_ + "/db", std::filesystem::copy_options::recursive);
    std::filesystem::remove(dir_ + "/durable");
    return false;
  });
  std::atomic<bool> damaged{false};
  const log::ScopedSink sink([&](log::Severity, std::string_view line) {
    if (line.contains("Could not recover the store: it has to be restored")) damaged = true;
  });
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!damaged) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    clock_.Advance(std::chrono::seconds(1));
    store_->Tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(store_->write_health().refuses_writes);
  EXPECT_FALSE(Put("/d", "1").ok());
}

// Owners cannot renew leases while the store refuses writes.
TEST_F(Recovery, LeasesGetTheirWholeTimeAgain) {
  Reopen();
  ASSERT_TRUE(Await(store_->LeaseGrant(60, 7)).ok());
  ASSERT_TRUE(Put("/a", "1", 7).ok());
  base::Failpoints::Arm("kv/recover/reopen", [] { return true; });
  base::Failpoints::Arm("kv/rocks/before-write", [] { return true; });
  EXPECT_FALSE(Put("/b", "1").ok());
  base::Failpoints::Arm("kv/rocks/before-write", nullptr);
  clock_.Advance(std::chrono::seconds(50));
  EXPECT_FALSE(Await(store_->LeaseKeepAlive(7)).ok());
  clock_.Advance(std::chrono::seconds(20));
  base::Failpoints::Arm("kv/recover/reopen", nullptr);
  AwaitRecovery();
  const auto lease = Await(store_->LeaseKeepAlive(7));
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  EXPECT_EQ(lease->remaining_ttl, 60);
  RangeRequest range{.key = "/a"};
  EXPECT_EQ(Await(store_->Range(std::move(range)))->count, 1);
  // Without a renewal the lease ends after its whole time.
  clock_.Advance(std::chrono::seconds(61));
  ASSERT_TRUE(Put("/c", "1").ok());
  EXPECT_FALSE(Await(store_->LeaseKeepAlive(7)).ok());
}

// After every fail point the live state is the reopened state.
TEST_F(Recovery, LiveStateIsTheReopenedState) {
  const char* seed_text = std::getenv("KEELSON_SEED");
  const std::uint64_t seed = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : base::Random::Real().Next();
  SCOPED_TRACE("KEELSON_SEED=" + std::to_string(seed));
  const auto random = base::Seeded(seed);
  const auto key = [&] { return "/k" + std::to_string(random->Below(12)); };
  const auto lease = [&] { return static_cast<LeaseID>(1 + random->Below(3)); };
  Reopen();
  std::uint64_t failures = 0;
  for (int round = 0; round < 60; ++round) {
    const std::string point = kFailpoints[random->Below(std::size(kFailpoints))];
    SCOPED_TRACE("round " + std::to_string(round) + " " + point);
    std::atomic<int> left{static_cast<int>(random->Below(12))};
    base::Failpoints::Arm(point, [&] { return left-- == 0; });
    // A recovery needs a failure before it.
    std::atomic<int> other{4};
    if (point == "kv/recover/reopen") base::Failpoints::Arm("kv/rocks/after-sync", [&] { return other-- == 0; });
    auto watch = store_->Watch({.key = "/", .range_end = "0", .prev_kv = true});
    for (int step = 0; step < 12; ++step) {
      switch (random->Below(8)) {
        case 0:
          IgnoreError(Await(store_->LeaseGrant(2 + static_cast<std::int64_t>(random->Below(30)), lease())),
                      "may exist");
          break;
        case 1:
          IgnoreError(Await(store_->LeaseRevoke(lease())), "may not exist");
          break;
        case 2:
          IgnoreError(Await(store_->Compact(*Await(store_->CurrentRevision()), random->Below(2) == 0)), "may fail");
          break;
        case 3:
          clock_.Advance(std::chrono::seconds(random->Below(8)));
          store_->Tick();
          break;
        case 4:
          IgnoreError(Put(key(), "leased", lease()), "may fail");
          break;
        case 5:
          IgnoreError(Write({Op::DeleteRange({.key = "/k1", .range_end = "/k5", .prev_kv = random->Below(2) == 0}),
                             Op::Put({.key = "/k9", .value = SharedBytes("after")})}),
                      "may fail");
          break;
        case 6:
          IgnoreError(Delete(key()), "may fail");
          break;
        default:
          IgnoreError(Put(key(), std::to_string(round) + "." + std::to_string(step)), "may fail");
      }
    }
    watch.reset();
    base::Failpoints::Arm(point, nullptr);
    base::Failpoints::Arm("kv/rocks/after-sync", nullptr);
    failures += store_->write_health().failures;
    AwaitRecovery();
    ASSERT_TRUE(Put("/last", std::to_string(round)).ok());
    const std::string live = State();
    Reopen();
    ASSERT_EQ(State(), live);
  }
  EXPECT_GT(failures, 10U) << "the fail points were passed";
}

// ENOSPC in the log, in a flush and in a rewrite. RocksDB refuses all writes after each of them.
TEST_F(Recovery, WritesGoOnWhenSpaceIsBack) {
  const auto system = std::make_shared<FullFileSystem>(NewLogFileSystem(rocksdb::FileSystem::Default()));
  const auto env = rocksdb::NewCompositeEnv(system);
  Reopen([&](Options& options) {
    options.env = env.get();
    options.memtable_bytes = 64 * 1024;
  });
  for (const bool flush : {false, true}) {
    SCOPED_TRACE(flush ? "flush" : "log");
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(Put("/k" + std::to_string(i), std::string(1000, 'x')).ok());
    const std::string before = State();
    system->full = true;
    if (flush) EXPECT_FALSE(Defragment(*store_).ok());
    EXPECT_FALSE(Put("/a", "1").ok());
    EXPECT_TRUE(store_->write_health().refuses_writes);
    EXPECT_EQ(State(), before);
    system->full = false;
    AwaitRecovery();
    EXPECT_EQ(State(), before);
    EXPECT_TRUE(Put("/a", "2").ok());
    EXPECT_TRUE(Defragment(*store_).ok());
  }
  const std::string live = State();
  Reopen();
  EXPECT_EQ(State(), live);
  store_.reset();
  EXPECT_TRUE(Check(dir_).ok());
}

// Mounts a small file system; null if that is not permitted.
class SmallFileSystem {
 public:
  static std::unique_ptr<SmallFileSystem> Mount(const std::string& path, const std::string& size) {
    std::filesystem::create_directories(path);
    if (::mount("keelson-test", path.c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0) return nullptr;
    return std::unique_ptr<SmallFileSystem>(new SmallFileSystem(path));
  }
  ~SmallFileSystem() { ::umount2(path_.c_str(), MNT_DETACH); }
  // A neighbour takes all space that is left.
  void Fill() const {
    std::ofstream file(path_ + "/neighbour", std::ios::binary);
    const std::string chunk(64 * 1024, 'n');
    while (file.write(chunk.data(), static_cast<std::streamsize>(chunk.size())).flush()) {
    }
  }
  void Empty() const { std::filesystem::remove(path_ + "/neighbour"); }

 private:
  explicit SmallFileSystem(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

class FullDisk : public Recovery {
 protected:
  // A store with keys on a disk that a neighbour has filled; false where that cannot be had.
  bool Prepare(std::int64_t deletion_reserve_bytes) {
    disk_ = SmallFileSystem::Mount(path_, "192m");
    if (!disk_) return false;
    open_ = [this, deletion_reserve_bytes](Options& options) {
      options.dir = path_ + "/store";
      options.deletion_reserve_bytes = deletion_reserve_bytes;
    };
    Reopen(open_);
    for (int i = 0; i < kKeys; i += 100) {
      std::vector<Op> ops;
      for (int j = i; j < i + 100; ++j)
        ops.push_back(Op::Put({.key = Key(j), .value = SharedBytes(std::string(1000, 'x'))}));
      EXPECT_TRUE(Write(std::move(ops)).ok());
    }
    disk_->Fill();
    EXPECT_EQ(std::filesystem::space(path_).available, 0U);
    // Space is measured once a second.
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (Put("/more", "1").ok() && std::chrono::steady_clock::now() < end) {
    }
    return true;
  }
  static std::string Key(int i) { return "/k" + std::to_string(i); }
  // Ten keys a transaction. The first error.
  Result<void> DeleteAll() {
    for (int i = 0; i < kKeys; i += 10) {
      std::vector<Op> ops;
      for (int j = i; j < i + 10; ++j) ops.push_back(Op::DeleteRange({.key = Key(j)}));
      KS_RETURN_IF_ERROR(Write(std::move(ops)));
    }
    return {};
  }
  void AwaitSpace() {
    disk_->Empty();
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!Put("/again", "1").ok()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      clock_.Advance(std::chrono::seconds(1));
      store_->Tick();
    }
  }

  static constexpr int kKeys = 10'000;
  const std::string path_ = temp_.path() + "/small";
  std::unique_ptr<SmallFileSystem> disk_;
  std::function<void(Options&)> open_;
};

TEST_F(FullDisk, DeletionsHaveRoom) {
  const auto reserve = Options().deletion_reserve_bytes;
  if (!Prepare(reserve)) GTEST_SKIP() << "this process may not mount a file system";
  const auto deleted = DeleteAll();
  ASSERT_TRUE(deleted.ok()) << deleted.error().message;
  EXPECT_EQ(store_->write_health().failures, 0U);
  ASSERT_TRUE(Await(store_->Compact(*Await(store_->CurrentRevision()), true)).ok());
  const std::string live = State();
  Reopen(open_);  // Also a start finds room.
  EXPECT_EQ(State(), live);
  AwaitSpace();
  EXPECT_EQ(std::filesystem::file_size(path_ + "/store/reserve"), static_cast<std::uintmax_t>(reserve))
      << "the reserve is there again";
  store_.reset();
}

TEST_F(FullDisk, WritesGoOnWhenSpaceIsBack) {
  if (!Prepare(0)) GTEST_SKIP() << "this process may not mount a file system";
  const auto deleted = DeleteAll();
  ASSERT_FALSE(deleted.ok()) << "without a reserve the log has no room";
  EXPECT_EQ(deleted.error().code, ErrorCode::kNoSpace);
  const std::string live = State();
  AwaitSpace();
  EXPECT_EQ(store_->write_health().failures, 1U);
  EXPECT_TRUE(DeleteAll().ok());
  store_.reset();
  EXPECT_TRUE(Check(path_ + "/store").ok());
}

TEST_F(Recovery, NewFoldersAreSyncedWithTheirParents) {
  std::atomic<int> synced{0};
  base::Failpoints::Arm("kv/rocks/sync-folder", [&] {
    ++synced;
    return false;
  });
  const std::string dir = temp_.path() + "/new/folders/store";
  Reopen([&](Options& options) { options.dir = dir; });
  EXPECT_EQ(synced, 4) << "three new folders in their parents, and db in its own";
  synced = 0;
  Reopen([&](Options& options) { options.dir = dir; });
  EXPECT_EQ(synced, 1) << "db may be new in a folder that is not";
  base::Failpoints::Arm("kv/rocks/sync-folder", nullptr);
}

}  // namespace
}  // namespace keelson::kv::rocks
