#include "storage/store.h"

#include <gtest/gtest.h>

#include <boost/asio/use_future.hpp>

#include "kv/memory/memory.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "storage/contract_suite/contract.h"
#include "testing/line_codec.h"

namespace keelson::storage {
namespace {

class StoreHarness final : public Harness {
 public:
  explicit StoreHarness(bool on_disk) {
    if (on_disk) {
      folder_ = std::make_unique<kv::rocks::TempDir>();
      kv::rocks::Options options;
      options.dir = folder_->path();
      options.sync = false;
      kv_ = *kv::rocks::Open(std::move(options));
    } else {
      kv_ = kv::memory::Open();
    }
    leases_ = std::make_unique<LeaseManager>(*kv_, clock_);
    store_ = std::make_unique<Store>(StoreParts{.kv = *kv_, .codec = codec_, .leases = *leases_},
                                     StoreOptions{.resource_prefix = "/pods"});
  }
  Interface& storage() override { return *store_; }
  kv::Store& kv() override { return *kv_; }
  base::FakeClock& clock() override { return clock_; }

 private:
  base::FakeClock clock_;
  std::unique_ptr<kv::rocks::TempDir> folder_;
  std::unique_ptr<kv::mvcc::EmbeddedStore> kv_;
  testing::LineCodec codec_;
  std::unique_ptr<LeaseManager> leases_;
  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(
    Store, Contract,
    ::testing::Values(HarnessParam{"memory", [](async::IOPool&) { return std::make_unique<StoreHarness>(false); }},
                      HarnessParam{"rocks", [](async::IOPool&) { return std::make_unique<StoreHarness>(true); }}),
    [](const auto& info) { return info.param.name; });

// Revisions are signed, resourceVersions are not.
TEST(StoreTest, ResourceVersionsBeyondEveryRevisionAreTooLarge) {
  async::IOPool io{1};
  StoreHarness harness(false);
  const auto await = [&](auto task) { return asio::co_spawn(io.Next(), std::move(task), asio::use_future).get(); };
  for (const char* text : {"9223372036854775807", "9223372036854775808", "18446744073709551615"}) {
    SCOPED_TRACE(text);
    const std::string want = std::string("Timeout: Too large resource version: ") + text + ", current: 1";
    StreamReader watch(*await(harness.storage().Watch("/pods", {.resource_version = text})));
    EXPECT_EQ(watch.NextText(), "ERROR 504 " + want);
    EXPECT_EQ(watch.NextText(), "END");
    for (const char* match : {"Exact", "NotOlderThan"}) {
      const auto list =
          await(harness.storage().GetList("/pods", {.resource_version = text, .resource_version_match = match}));
      ASSERT_FALSE(list.ok()) << match << " " << list->resource_version;
      EXPECT_EQ(list.error().status->code(), 504);
      EXPECT_EQ(list.error().status->message(), want);
    }
  }
}

}  // namespace
}  // namespace keelson::storage
