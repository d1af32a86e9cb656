#include "kv/rocks/rocks.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/fake_clock.h"
#include "kv/contract_suite/contract.h"
#include "kv/rocks/temp_dir.h"

namespace keelson::kv::rocks {
namespace {

class RocksHarness final : public Harness {
 public:
  explicit RocksHarness(std::size_t resident_bytes_max) : resident_bytes_max_(resident_bytes_max) { OpenStore(); }
  Store& store() override { return *store_; }
  void Advance(int seconds) override {
    clock_.Advance(std::chrono::seconds(seconds));
    store_->Tick();
  }
  bool fresh() const override { return true; }
  bool Reopen() override {
    store_.reset();
    OpenStore();
    return true;
  }

 private:
  void OpenStore() {
    Options options;
    options.clock = &clock_;
    options.dir = dir_.path();
    options.resident_bytes_max = resident_bytes_max_;
    options.sync = false;  // A hundred stores a second; durability has separate tests.
    auto store = Open(std::move(options));
    ASSERT_TRUE(store.ok()) << store.error().message;
    store_ = *std::move(store);
  }
  TempDir dir_;
  base::FakeClock clock_;
  const std::size_t resident_bytes_max_;
  std::unique_ptr<mvcc::EmbeddedStore> store_;
};

// With no memory for values every read goes to RocksDB.
INSTANTIATE_TEST_SUITE_P(
    Rocks, Contract,
    testing::Values(HarnessParam{"rocks", [] { return std::make_unique<RocksHarness>(8 * 1024 * 1024); }, ""},
                    HarnessParam{"rocksFromDisk", [] { return std::make_unique<RocksHarness>(0); }, ""}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace keelson::kv::rocks
