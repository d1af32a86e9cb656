// Store and disk: ownership of the folder, space, damage, start, snapshots.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "async/io_pool.h"
#include "base/failpoint.h"
#include "kv/rocks/backend.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "kv/rocks/tools.h"
#include "kv/snapshot/snapshot.h"
#include "telemetry/log.h"

namespace keelson::kv::rocks {
namespace {

class Durability : public ::testing::Test {
 protected:
  std::unique_ptr<mvcc::EmbeddedStore> OpenAt(const std::string& dir, std::function<void(Options&)> change = nullptr) {
    Options options;
    options.dir = dir;
    if (change) change(options);
    auto store = Open(std::move(options));
    EXPECT_TRUE(store.ok()) << store.error().message;
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string dir() const { return temp_.path() + "/store"; }
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.Next(), std::move(task), asio::use_future).get();
  }
  Result<Revision> Put(Store& store, const std::string& key, const std::string& value, LeaseID lease = 0) {
    TxnRequest request{.success = {Op::Put({.key = key, .value = SharedBytes(value), .lease = lease})}};
    auto answer = Await(store.Txn(std::move(request)));
    if (!answer.ok()) return answer.error();
    return answer->revision;
  }
  Result<RangeResponse> All(Store& store) {
    RangeRequest request{.key = std::string(1, '\0'), .range_end = std::string(1, '\0')};
    return Await(store.Range(std::move(request)));
  }
  // The only file of the store with this ending.
  std::string FileWith(const std::string& ending) const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(dir() + "/db")) {
      if (entry.path().string().ends_with(ending) && std::filesystem::file_size(entry.path()) > 0)
        found = entry.path().string();
    }
    return found;
  }
  static void FlipByte(const std::string& path, std::int64_t offset) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const char byte = static_cast<char>(file.get());
    file.seekp(offset);
    file.put(static_cast<char>(byte ^ 0x55));
  }
  TempDir temp_;
  async::IOPool io_{2};
};

TEST_F(Durability, OneProcessHasTheFolder) {
  auto store = OpenAt(dir());
  Options options;
  options.dir = dir();
  auto second = Open(std::move(options));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kInUse);
  EXPECT_TRUE(second.error().message.starts_with("data folder in use: ")) << second.error().message;
  EXPECT_NE(second.error().message.find("process " + std::to_string(::getpid())), std::string::npos);
  store.reset();
  EXPECT_NE(OpenAt(dir()), nullptr);
}

TEST_F(Durability, FolderThatCannotBeMade) {
  Options options;
  options.dir = "/proc/no/such/folder";
  auto store = Open(std::move(options));
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.error().message.find("/proc/no/such/folder"), std::string::npos);
}

TEST_F(Durability, QuotaRefusesPutsAndServesTheRest) {
  auto store = OpenAt(dir(), [](Options& options) { options.quota_bytes = 2 * 1024 * 1024; });
  const std::string value(100 * 1024, 'x');
  Result<Revision> last = Put(*store, "/k0", value);
  int written = 1;
  while (last.ok() && written < 100) last = Put(*store, "/k" + std::to_string(written++), value);
  ASSERT_FALSE(last.ok());
  EXPECT_EQ(last.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(last.error().message, "etcdserver: mvcc: database space exceeded");
  EXPECT_GT(written, 5);
  EXPECT_TRUE(All(*store).ok());
  TxnRequest remove{.success = {Op::DeleteRange({.key = "/", .range_end = "0"})}};
  auto removed = Await(store->Txn(std::move(remove)));
  ASSERT_TRUE(removed.ok());
  ASSERT_TRUE(Await(store->Compact(removed->revision, true)).ok());
  ASSERT_TRUE(Defragment(*store).ok());
  // Used space is measured again after a moment.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!Put(*store, "/again", value).ok()) ASSERT_LT(std::chrono::steady_clock::now(), end);
}

TEST_F(Durability, DiskReserveIsKept) {
  auto store = OpenAt(dir(), [](Options& options) { options.disk_reserve_bytes = std::int64_t{1} << 60; });
  EXPECT_EQ(Put(*store, "/a", "1").error().code, ErrorCode::kNoSpace);
}

TEST_F(Durability, FailedCommitIsNotVisibleAndStopsWrites) {
  std::atomic<int> logged{0};
  const log::ScopedSink sink([&](log::Severity severity, std::string_view line) {
    if (severity == log::Severity::kError && line.contains("Store refuses writes")) ++logged;
  });
  auto store = OpenAt(dir());
  ASSERT_TRUE(Put(*store, "/a", "1").ok());
  base::Failpoints::Arm("kv/rocks/before-write", [] { return true; });
  EXPECT_FALSE(Put(*store, "/a", "2").ok());
  base::Failpoints::Arm("kv/rocks/before-write", nullptr);
  EXPECT_FALSE(Put(*store, "/a", "3").ok()) << "what the disk has is not known any more";
  EXPECT_EQ(logged, 1);
  auto all = All(*store);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->kvs.at(0).value.view(), "1");
  EXPECT_EQ(all->kvs.at(0).version, 1);
  store.reset();
  store = OpenAt(dir());
  EXPECT_EQ(All(*store)->kvs.at(0).value.view(), "1");
  EXPECT_TRUE(Put(*store, "/a", "4").ok());
}

TEST_F(Durability, DamagedLogIsNamedNotServed) {
  auto store = OpenAt(dir());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Put(*store, "/k" + std::to_string(i), std::string(1000, 'x')).ok());
  store.reset();
  FlipByte(FileWith(".log"), 5000);
  Options options;
  options.dir = dir();
  auto damaged = Open(std::move(options));
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(damaged.error().message.find("acknowledged"), std::string::npos) << damaged.error().message;
  EXPECT_FALSE(Check(dir()).ok()) << "and it stays so";
}

TEST_F(Durability, DamagedValueIsNamedNotServed) {
  auto store = OpenAt(dir(), [](Options& options) { options.resident_bytes_max = 0; });
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(Put(*store, "/k" + std::to_string(i), std::string(5000, 'x')).ok());
  ASSERT_TRUE(Defragment(*store).ok());  // so that it is in a file with checksums
  store.reset();
  std::string largest;
  for (const auto& entry : std::filesystem::directory_iterator(dir() + "/db")) {
    if (!entry.path().string().ends_with(".sst")) continue;
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)) largest = entry.path().string();
  }
  FlipByte(largest, 100'000);
  auto report = Check(dir());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(report.error().message.find(std::filesystem::path(largest).filename().string()), std::string::npos)
      << report.error().message;
  store = OpenAt(dir(), [](Options& options) { options.resident_bytes_max = 0; });
  auto all = All(*store);
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(all.error().message.starts_with("store damaged: the value of revision ")) << all.error().message;
  RangeRequest good{.key = "/k0"};
  EXPECT_TRUE(Await(store->Range(std::move(good))).ok()) << "the rest is still served";
}

TEST_F(Durability, SpaceComesBackAfterCompaction) {
  auto store = OpenAt(dir(), [](Options& options) { options.sync = false; });
  const std::string value(10 * 1024, 'x');
  Revision last = 0;
  for (int i = 0; i < 3000; ++i) last = *Put(*store, "/k" + std::to_string(i % 10), value);
  const auto before = Await(store->Status())->db_size;
  EXPECT_GT(before, 20'000'000);
  ASSERT_TRUE(Await(store->Compact(last, true)).ok());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Await(store->Status())->db_size > before / 3) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << Await(store->Status())->db_size << " of " << before;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(All(*store)->count, 10);
}

TEST_F(Durability, OpeningReportsItsProgress) {
  auto store = OpenAt(dir(), [](Options& options) { options.sync = false; });
  for (std::uint64_t i = 0; i < kProgressEvery + 1000; i += 100) {
    TxnRequest request;
    for (std::uint64_t j = i; j < i + 100; ++j) request.success.push_back(Op::Put({.key = "/k" + std::to_string(j)}));
    ASSERT_TRUE(Await(store->Txn(std::move(request))).ok());
  }
  store.reset();
  int calls = 0;
  store = OpenAt(dir(), [&](Options& options) {
    options.progress = [&](std::uint64_t done, std::uint64_t about) {
      ++calls;
      EXPECT_EQ(done, kProgressEvery);
      EXPECT_GE(about, done);
    };
  });
  EXPECT_EQ(calls, 1);
}

// More values than one buffer holds, of all sizes, none of them resident.
TEST_F(Durability, ManyValuesAreReadTogether) {
  auto store = OpenAt(dir(), [](Options& options) {
    options.sync = false;
    options.resident_bytes_max = 0;
  });
  const auto value_of = [](int i) {
    return std::string(i % 7 == 0 ? 0 : static_cast<std::size_t>(i) * 37 % 30'000, 'a' + static_cast<char>(i % 26));
  };
  constexpr int kKeys = 1000;
  for (int i = 0; i < kKeys; i += 20) {
    TxnRequest request;
    for (int j = i; j < i + 20; ++j) {
      const int number = j * 7 % kKeys;  // other than in the order of keys
      request.success.push_back(
          Op::Put({.key = "/k" + std::to_string(number), .value = SharedBytes(value_of(number))}));
    }
    ASSERT_TRUE(Await(store->Txn(std::move(request))).ok());
  }
  const auto all = All(*store);
  ASSERT_TRUE(all.ok()) << all.error().message;
  ASSERT_EQ(all->kvs.size(), static_cast<std::size_t>(kKeys));
  store.reset();  // What was read outlives the store.
  for (const KeyValue& kv : all->kvs) ASSERT_EQ(kv.value.view(), value_of(std::stoi(kv.key.substr(2)))) << kv.key;
}

// Keys, values, versions, revisions and leases as one text.
std::string Fingerprint(const RangeResponse& response) {
  std::string text;
  for (const KeyValue& kv : response.kvs) {
    text += kv.key + "=" + std::string(kv.value.view()) + " " + std::to_string(kv.create_revision) + " " +
            std::to_string(kv.mod_revision) + " " + std::to_string(kv.version) + " " + std::to_string(kv.lease) + "\n";
  }
  return text;
}

TEST_F(Durability, RestoredStoreIsTheSame) {
  auto store = OpenAt(dir(), [](Options& options) { options.sync = false; });
  auto lease = Await(store->LeaseGrant(300, 0));
  ASSERT_TRUE(lease.ok());
  for (int i = 0; i < 1200; ++i)
    ASSERT_TRUE(Put(*store, "/k" + std::to_string(i % 700), std::to_string(i), i % 7 == 0 ? lease->id : 0).ok());
  TxnRequest many{.success = {Op::Put({.key = "/t2", .value = SharedBytes("x")}),
                              Op::Put({.key = "/t1", .value = SharedBytes("y")})}};
  ASSERT_TRUE(Await(store->Txn(std::move(many))).ok());
  TxnRequest remove{.success = {Op::DeleteRange({.key = "/k5"})}};
  const Revision last = Await(store->Txn(std::move(remove)))->revision;
  const std::string path = temp_.path() + "/snapshot";
  auto info = Await(snapshot::WriteFile(*store, path));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->revision, last);
  EXPECT_EQ(info->keys, 701);
  EXPECT_EQ(std::filesystem::file_size(path) % 512, 32u);

  const std::string other = temp_.path() + "/restored";
  auto report = Restore(path, other);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->keys, 701);
  EXPECT_EQ(report->leases, 1);
  EXPECT_EQ(Restore(path, other).error().code, ErrorCode::kInvalidArgument) << "never over a store";
  auto restored = OpenAt(other);
  EXPECT_EQ(Fingerprint(*All(*restored)), Fingerprint(*All(*store)));
  EXPECT_EQ(*Await(restored->CurrentRevision()), last);
  RangeRequest old{.key = "/k1", .revision = last - 1};
  EXPECT_EQ(Await(restored->Range(std::move(old))).error().code, ErrorCode::kCompacted);
  EXPECT_EQ(*Put(*restored, "/new", "1"), last + 1);
  ASSERT_TRUE(Await(restored->LeaseRevoke(lease->id)).ok());
  EXPECT_LT(All(*restored)->count, 701);
}

// Every file of the folder with its size and the time it was changed.
std::string FilesOf(const std::string& dir) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
    files.insert(entry.path().string() + " " + std::to_string(entry.is_regular_file() ? entry.file_size() : 0) + " " +
                 std::to_string(entry.last_write_time().time_since_epoch().count()) + "\n");
  }
  std::string text;
  for (const std::string& file : files) text += file;
  return text;
}

TEST_F(Durability, CheckOnlyReads) {
  for (const bool defragmented : {false, true}) {
    auto store = OpenAt(dir());
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(Put(*store, "/k" + std::to_string(i), std::string(5000, 'x')).ok());
    if (defragmented) ASSERT_TRUE(Defragment(*store).ok());
    EXPECT_EQ(Check(dir()).error().code, ErrorCode::kInUse);
    store.reset();
    const std::string before = FilesOf(dir());
    const auto report = Check(dir());
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->keys, 50);
    EXPECT_EQ(FilesOf(dir()), before);
  }
}

TEST_F(Durability, FullDiskIsAnErrorAtTheStart) {
  auto store = OpenAt(dir());
  ASSERT_TRUE(Put(*store, "/a", "1").ok());
  store.reset();
  base::Failpoints::Arm("kv/rocks/disk-full", [] { return true; });
  Options options;
  options.dir = dir();
  const auto opened = Open(std::move(options));
  const auto report = Check(dir());
  const auto defragmented = DefragmentDir(dir());
  base::Failpoints::Arm("kv/rocks/disk-full", nullptr);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(opened.error().message,
            "no space to open the store in " + dir() + ": 0 bytes are free on its file system, 1048576 are needed");
  EXPECT_EQ(defragmented.error().code, ErrorCode::kNoSpace);
  EXPECT_TRUE(report.ok()) << "reading needs no space";
  store = OpenAt(dir());
  EXPECT_EQ(All(*store)->count, 1);
}

// RocksDB tries such a compaction again and again, and each would take all space that there is.
TEST_F(Durability, CompactionWithoutRoomIsRefused) {
  for (const bool sync : {true, false}) {
    SCOPED_TRACE(sync ? "synced" : "not synced");
    auto store = OpenAt(dir() + (sync ? "1" : "2"), [&](Options& options) { options.sync = sync; });
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(Put(*store, "/k" + std::to_string(i), std::string(5000, 'x')).ok());
    const DatabasePtr database = static_cast<RocksBackend*>(store->backend())->database();
    rocksdb::ColumnFamilyHandle* const values = database->families.values;
    ASSERT_TRUE(database->db->Flush({}, values).ok());
    rocksdb::CompactRangeOptions rewrite;
    rewrite.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    base::Failpoints::Arm("kv/rocks/disk-full", [] { return true; });
    EXPECT_TRUE(database->db->CompactRange(rewrite, values, nullptr, nullptr).IsNoSpace());
    TxnRequest remove{.success = {Op::DeleteRange({.key = "/k0"})}};
    EXPECT_TRUE(Await(store->Txn(std::move(remove))).ok());
    EXPECT_TRUE(database->db->Flush({}, values).ok()) << "of the same threads";
    base::Failpoints::Arm("kv/rocks/disk-full", nullptr);
    EXPECT_TRUE(database->db->CompactRange(rewrite, values, nullptr, nullptr).ok());
    EXPECT_EQ(All(*store)->count, 49);
  }
}

TEST_F(Durability, InterruptedRestoreIsRefused) {
  auto store = OpenAt(dir(), [](Options& options) { options.sync = false; });
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put(*store, "/k" + std::to_string(i), std::string(100 * 1024, 'x')).ok());
  const std::string path = temp_.path() + "/snapshot";
  ASSERT_TRUE(Await(snapshot::WriteFile(*store, path)).ok());
  const std::string other = temp_.path() + "/restored";
  std::filesystem::create_directories(other);
  std::ofstream(other + "/durable") << "2000 2000\n";  // of a store that was here before
  int batches = 0;
  base::Failpoints::Arm("kv/restore/batch", [&] { return ++batches == 2; });
  EXPECT_FALSE(Restore(path, other).ok());
  base::Failpoints::Arm("kv/restore/batch", nullptr);
  EXPECT_EQ(batches, 2);
  Options options;
  options.dir = other;
  const auto opened = Open(std::move(options));
  ASSERT_FALSE(opened.ok());
  EXPECT_TRUE(opened.error().message.starts_with("a restore into " + other + " did not end")) << opened.error().message;
  EXPECT_FALSE(Check(other).ok());
  const auto report = Restore(path, other);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->keys, 100);
  EXPECT_FALSE(std::filesystem::exists(other + "/db.restoring"));
  auto restored = OpenAt(other);
  ASSERT_NE(restored, nullptr);
  EXPECT_EQ(*Await(restored->CurrentRevision()), *Await(store->CurrentRevision()));
  EXPECT_EQ(All(*restored)->count, 100);
}

TEST_F(Durability, DamagedSnapshotIsRefused) {
  auto store = OpenAt(dir());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Put(*store, "/k" + std::to_string(i), std::string(100, 'x')).ok());
  const std::string path = temp_.path() + "/snapshot";
  ASSERT_TRUE(Await(snapshot::WriteFile(*store, path)).ok());
  FlipByte(path, 3000);
  EXPECT_EQ(snapshot::ReadFile(path, nullptr).error().code, ErrorCode::kCorrupt);
  const std::string other = temp_.path() + "/restored";
  EXPECT_FALSE(Restore(path, other).ok());
  EXPECT_FALSE(std::filesystem::exists(other + "/db"));
  std::filesystem::resize_file(path, 1000);
  EXPECT_EQ(snapshot::ReadFile(path, nullptr).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace keelson::kv::rocks
