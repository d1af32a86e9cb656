// The embedded store alone on the simulated disk: faults in an order that a seed would seldom draw.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <filesystem>

#include "async/io_pool.h"
#include "base/testing/seeded_random.h"
#include "kv/rocks/rocks.h"
#include "simulation/disk.h"

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

}  // namespace
}  // namespace keelson::simulation
