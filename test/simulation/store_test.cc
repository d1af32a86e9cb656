// The embedded store alone on the simulated disk: faults in an order that a seed would seldom draw.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>
#include <optional>

#include "async/io_pool.h"
#include "base/testing/seeded_random.h"
#include "kv/rocks/backend.h"
#include "kv/rocks/rocks.h"
#include "simulation/disk.h"
#include "simulation/model.h"
#include "simulation/server.h"
#include "simulation/world.h"

namespace keelson::simulation {
namespace {

class StoreOnDisk {
 public:
  StoreOnDisk(const std::string& dir, std::uint64_t seed)
      : disk_(dir), dir_(dir + "/data"), random_(base::Seeded(seed)) {}

  void Open() {
    kv::rocks::Options options;
    options.dir = dir_;
    auto opened = kv::rocks::Open(std::move(options));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = *std::move(opened);
  }
  bool Put(const std::string& key) {
    kv::TxnRequest request{.success = {kv::Op::Put({.key = key, .value = base::SharedBytes("v")})}};
    return asio::co_spawn(io_.executor(0), store_->Txn(std::move(request)), asio::use_future).get().ok();
  }
  std::string Keys() {
    kv::RangeRequest request{.key = std::string(1, '\0'), .range_end = std::string(1, '\0')};
    const auto all = asio::co_spawn(io_.executor(0), store_->Range(std::move(request)), asio::use_future).get();
    std::string text;
    for (const auto& kv : all->kvs) text += kv.key;
    return text;
  }
  void End(Disk::Loss loss) {
    disk_.Freeze();
    store_.reset();
    disk_.Thaw(loss, *random_);
  }
  Disk& disk() { return disk_; }

 private:
  Disk disk_;
  const std::string dir_;
  const std::unique_ptr<base::Random> random_;
  async::IOPool io_{1};
  std::unique_ptr<kv::mvcc::EmbeddedStore> store_;
};

// A sync that fails leaves bytes in the page cache that no later sync writes. The next process reads them as if they
// were on the disk: what it shows must be there after a loss of power, and so must what it acknowledges.
TEST(StoreOnDisk, WhatIsShownAfterAFailedSyncAndAKillStays) {
  const std::string dir = std::filesystem::temp_directory_path() / ("keelson-disk-" + std::to_string(::getpid()));
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
    StoreOnDisk store(dir, seed);
    store.Open();
    ASSERT_TRUE(store.Put("/a"));
    store.disk().FailSyncs(1);
    ASSERT_FALSE(store.Put("/b"));
    store.End(Disk::Loss::kNothing);
    store.Open();
    const std::string shown = store.Keys();
    ASSERT_TRUE(store.Put("/c"));
    store.End(Disk::Loss::kUnsynced);
    store.Open();
    EXPECT_EQ(store.Keys(), shown + "/c");
    store.End(Disk::Loss::kNothing);
  }
  std::filesystem::remove_all(dir);
}

// A server in simulated time, and what a test asks of its store.
class StoreInTime {
 public:
  explicit StoreInTime(const std::string& dir) : disk_(dir) {
    auto started = Server::Start(world_, disk_, model_, {.dir = dir + "/data", .owner = 10, .flush_every = 1});
    if (started.ok()) server_ = *std::move(started);
  }
  ~StoreInTime() {
    if (server_) server_->Stop();
  }
  bool started() const { return server_ != nullptr; }
  template <class T>
  bool Succeeds(Awaitable<kv::Result<T>> work) {
    std::optional<bool> ok;
    server_->Ask<kv::Result<T>>(std::move(work), [&](kv::Result<T> result) { ok = result.ok(); });
    while (!ok && world_.Step()) {
    }
    return ok.value_or(false);
  }
  void Pass(Time time) {
    for (const Time until = world_.now() + time; world_.now() < until;) world_.Step();
  }
  // Of the column family with the leases.
  std::string NewTables() {
    const auto database = static_cast<kv::rocks::RocksBackend*>(kv().backend())->database();
    std::string count;
    database->db->GetProperty(database->families.settings, "rocksdb.num-files-at-level0", &count);
    return count;
  }
  kv::mvcc::EmbeddedStore& kv() { return server_->kv(); }
  Disk& disk() { return disk_; }

 private:
  World world_{1};
  Model model_{world_};
  Disk disk_;
  std::unique_ptr<Server> server_;
};

// RocksDB tries a compaction that found no room again after a second. That second has to be simulated: no space comes
// back while the simulation waits for it.
TEST(StoreInTime, CompactionWithoutRoomIsTriedAgain) {
  const std::string dir = std::filesystem::temp_directory_path() / ("keelson-time-" + std::to_string(::getpid()));
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  {
    StoreInTime store(dir);
    ASSERT_TRUE(store.started());
    // Every commit is flushed into a table of its own, all with the same keys.
    ASSERT_TRUE(store.Succeeds(store.kv().LeaseGrant(1000, 7)));
    ASSERT_TRUE(store.Succeeds(store.kv().LeaseRevoke(7)));
    ASSERT_TRUE(store.Succeeds(store.kv().LeaseGrant(1000, 7)));
    const std::string before = store.NewTables();
    store.disk().SetFree(0);  // The reserve gives room for the commit and its table, not for a compaction.
    ASSERT_TRUE(store.Succeeds(store.kv().LeaseRevoke(7)));
    store.Pass(std::chrono::seconds(30));
    EXPECT_EQ(before, "3");
    EXPECT_EQ(store.NewTables(), "4");
    store.disk().SetFree(-1);
    store.Pass(std::chrono::seconds(3));
    EXPECT_EQ(store.NewTables(), "0");
  }
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace keelson::simulation
