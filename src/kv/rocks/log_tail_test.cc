// Ends of logs after a crash, and recovery by later starts.
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "async/io_pool.h"
#include "base/failpoint.h"
#include "kv/rocks/backend.h"
#include "kv/rocks/format.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "kv/rocks/tools.h"

namespace keelson::kv::rocks {
namespace {

class LogTail : public ::testing::Test {
 protected:
  static Result<std::unique_ptr<mvcc::EmbeddedStore>> OpenAt(const std::string& dir) {
    Options options;
    options.dir = dir;
    return Open(std::move(options));
  }
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.executor(0), std::move(task), asio::use_future).get();
  }
  void Put(Store& store, const std::string& key, const std::string& value, LeaseID lease = 0) {
    TxnRequest request{.success = {Op::Put({.key = key, .value = SharedBytes(value), .lease = lease})}};
    const auto answer = Await(store.Txn(std::move(request)));
    EXPECT_TRUE(answer.ok()) << answer.error().message;
  }
  std::string Keys(Store& store) {
    RangeRequest request{.key = std::string(1, '\0'), .range_end = std::string(1, '\0')};
    const auto all = Await(store.Range(std::move(request)));
    EXPECT_TRUE(all.ok()) << all.error().message;
    std::string text = std::to_string(all->revision);
    for (const KeyValue& kv : all->kvs) text += " " + kv.key + "=" + std::string(kv.value.view());
    return text;
  }
  // Copy of the folder as a crash at this moment leaves it. The mark of acknowledged revisions may be older.
  std::string Crash(const std::string& dir) {
    const std::string copy = temp_.path() + "/crash" + std::to_string(++crashes_);
    std::filesystem::copy(dir, copy, std::filesystem::copy_options::recursive);
    std::filesystem::remove(copy + "/durable");
    return copy;
  }
  // The newest log that has a record.
  static std::string NewestLog(const std::string& dir) {
    std::string newest;
    for (const auto& entry : std::filesystem::directory_iterator(dir + "/db")) {
      const std::string path = entry.path().string();
      if (path.ends_with(".log") && path > newest && !Content(path).empty()) newest = path;
    }
    return newest;
  }
  // Its last record was written in part.
  static void TearLog(const std::string& dir) {
    const std::string newest = NewestLog(dir);
    ASSERT_NE(newest, "");
    const std::size_t end = Content(newest).size();
    std::fstream file(newest, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(end - kTorn));
    file.write(std::string(kTorn, '\0').data(), kTorn);
  }
  // Without the zeros behind its end.
  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto last = bytes.find_last_not_of('\0');
    bytes.resize(last == std::string::npos ? 0 : last + 1);
    return bytes;
  }

  static constexpr std::size_t kTorn = 8;
  TempDir temp_;
  async::IOPool io_{1};
  int crashes_ = 0;
};

// A start keeps the torn log. A rewrite flushes one family after the other, and no commit was written since that would
// continue the log. That RocksDB refuses to open after a crash in between ("SST file is ahead of WALs") is kept from
// happening by the empty batch that it writes to its new log when it has read a torn one.
TEST_F(LogTail, CrashWhileFamiliesAreFlushedBehindATornLog) {
  const std::string dir = temp_.path() + "/store";
  auto store = OpenAt(dir);
  ASSERT_TRUE(store.ok()) << store.error().message;
  ASSERT_TRUE(Await((*store)->LeaseGrant(1'000'000, 7)).ok());
  Put(**store, "/a", "1", 7);
  Put(**store, "/b", "2");
  Put(**store, "/c", "torn");
  const std::string torn = Crash(dir);
  TearLog(torn);
  auto started = OpenAt(torn);
  ASSERT_TRUE(started.ok()) << started.error().message;
  const std::string keys = Keys(**started);
  EXPECT_EQ(keys, "3 /a=1 /b=2");
  std::vector<std::string> crashes;
  base::Failpoints::Arm("kv/rocks/rewrite-family", [&] {
    crashes.push_back(Crash(torn));
    return false;
  });
  EXPECT_TRUE(Defragment(**started).ok());
  base::Failpoints::Arm("kv/rocks/rewrite-family", nullptr);
  ASSERT_EQ(crashes.size(), 3U);
  for (const std::string& crash : crashes) {
    auto after = OpenAt(crash);
    ASSERT_TRUE(after.ok()) << after.error().message;
    EXPECT_EQ(Keys(**after), keys);
  }
}

// The same crash, if that batch were missing.
TEST_F(LogTail, WithoutTheEmptyBatchTheStoreWouldNotOpen) {
  const std::string dir = temp_.path() + "/store";
  auto store = OpenAt(dir);
  ASSERT_TRUE(store.ok()) << store.error().message;
  ASSERT_TRUE(Await((*store)->LeaseGrant(1'000'000, 7)).ok());
  Put(**store, "/a", "1", 7);
  Put(**store, "/b", "torn");
  const std::string torn = Crash(dir);
  TearLog(torn);
  const std::string log = NewestLog(torn);
  auto started = OpenAt(torn);
  ASSERT_TRUE(started.ok()) << started.error().message;
  std::vector<std::string> crashes;
  base::Failpoints::Arm("kv/rocks/rewrite-family", [&] {
    crashes.push_back(Crash(torn));
    return false;
  });
  EXPECT_TRUE(Defragment(**started).ok());
  base::Failpoints::Arm("kv/rocks/rewrite-family", nullptr);
  ASSERT_EQ(crashes.size(), 3U);
  const std::string continued = NewestLog(crashes[1]);
  ASSERT_NE(std::filesystem::path(continued).filename(), std::filesystem::path(log).filename());
  std::filesystem::resize_file(continued, 0);
  const auto refused = OpenAt(crashes[1]);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().message.contains("ahead of WALs")) << refused.error().message;
}

// A log or file that is gone from the middle would otherwise be noticed by nobody.
TEST_F(LogTail, GapInHistoryIsDamage) {
  const std::string dir = temp_.path() + "/store";
  for (int i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    auto store = OpenAt(dir);
    ASSERT_TRUE(store.ok()) << store.error().message;
    Put(**store, "/a", "1");  // 2, and 6
    Put(**store, "/b", "2");
    Put(**store, "/c", "3");
    TxnRequest two{.success = {Op::Put({.key = "/d"}), Op::Put({.key = "/e"})}};
    const auto last = Await((*store)->Txn(std::move(two)));
    ASSERT_TRUE(last.ok());
    const std::string whole = Crash(dir);
    EXPECT_TRUE(OpenAt(whole).ok());
    const std::vector<RecordKey> keys = {RecordKey(last->revision - 3, 0), RecordKey(last->revision - 1, 0),
                                         RecordKey(last->revision, 0)};
    for (const RecordKey& key : keys) {
      const DatabasePtr database = static_cast<RocksBackend*>((*store)->backend())->database();
      const rocksdb::Slice name(key.view().data(), key.view().size());
      std::string value;
      ASSERT_TRUE(database->db->Get({}, database->families.changes, name, &value).ok());
      rocksdb::WriteOptions synced;
      synced.sync = true;
      ASSERT_TRUE(database->db->Delete(synced, database->families.changes, name).ok());
      const auto damaged = OpenAt(Crash(dir));
      ASSERT_FALSE(damaged.ok());
      EXPECT_EQ(damaged.error().code, ErrorCode::kCorrupt);
      EXPECT_TRUE(damaged.error().message.contains("changes are missing")) << damaged.error().message;
      ASSERT_TRUE(database->db->Put(synced, database->families.changes, name, value).ok());
    }
    ASSERT_TRUE(Await((*store)->Compact(last->revision, true)).ok());  // The same again behind a compaction.
  }
}

}  // namespace
}  // namespace keelson::kv::rocks
