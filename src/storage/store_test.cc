#include "storage/store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/use_future.hpp>

#include "kv/memory/memory.h"
#include "kv/rocks/rocks.h"
#include "kv/rocks/temp_dir.h"
#include "storage/contract_suite/contract.h"
#include "testing/failing_kv.h"
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

// A codec that completes objects when they are read: "new" data becomes "complete".
class CompletingCodec final : public ResourceCodec {
 public:
  const meta::GroupResource& resource() const override { return inner_.resource(); }
  Outcome<base::SharedBytes, std::string> Encode(base::Arena& arena, Value object) const override {
    return inner_.Encode(arena, object);
  }
  Outcome<Value, std::string> Decode(base::Arena& arena, std::string_view stored) const override {
    return inner_.Decode(arena, stored);
  }
  Outcome<base::SharedBytes, std::string> Normalize(std::string_view stored) const override {
    ++normalized;
    std::string text(stored);
    const auto at = text.find("data=new");
    if (at == std::string::npos) return base::SharedBytes();
    return base::SharedBytes(text.replace(at, 8, "data=complete"));
  }
  bool completes_on_read() const override { return true; }
  Outcome<base::SharedBytes, std::string> WithResourceVersion(std::string_view stored,
                                                              std::uint64_t resource_version) const override {
    return inner_.WithResourceVersion(stored, resource_version);
  }
  Outcome<Attributes, std::string> GetAttrs(const base::SharedBytes& stored) const override {
    return inner_.GetAttrs(stored);
  }
  std::string UID(std::string_view stored) const override { return inner_.UID(stored); }

  mutable std::atomic<int> normalized{0};

 private:
  testing::LineCodec inner_;
};

// The watch cache gets what was written from the store a moment later.
TEST(StoreTest, WhatWasWrittenIsCompletedOnce) {
  async::IOPool io{1};
  const auto await = [&](auto task) { return asio::co_spawn(io.Next(), std::move(task), asio::use_future).get(); };
  base::FakeClock clock;
  const auto kv = kv::memory::Open();
  LeaseManager leases(*kv, clock);
  const CompletingCodec codec;
  Store store(StoreParts{.kv = *kv, .codec = codec, .leases = leases}, StoreOptions{.resource_prefix = "/pods"});
  const auto read_back = [&](const std::string& key) {
    auto range = await(kv->Range({.key = store.FullKey(key)}));
    return *await(store.ObjectOf(range->kvs.at(0)));
  };
  const auto create = [&](const std::string& name, std::string_view data) {
    base::Arena arena;
    Value object = Value::Map(arena);
    object.EnsureMap(arena, "metadata").Set(arena, "name", std::string_view(name));
    object.Set(arena, "data", data);
    const int before = codec.normalized;
    const auto created = await(store.Create("/pods/" + name, object, 0));
    EXPECT_TRUE(created.ok());
    EXPECT_EQ(codec.normalized, before + 1);
    return *created;
  };
  for (const bool wanted : {true, false}) {
    store.SetReadBack(wanted);
    for (const std::string_view data : {"new", "old"}) {
      SCOPED_TRACE(data);
      const std::string name = std::string(data) + (wanted ? "-wanted" : "");
      const ObjectPtr created = create(name, data);
      const int before = codec.normalized;
      const ObjectPtr read = read_back("/pods/" + name);
      EXPECT_EQ(codec.normalized, before + (wanted ? 0 : 1));
      EXPECT_EQ(read->stored().view(), created->stored().view());
      EXPECT_EQ(read->stale(), created->stale());
      EXPECT_EQ(read->stale(), data == "new");
      (void)read_back("/pods/" + name);
      EXPECT_EQ(codec.normalized, before + (wanted ? 1 : 2)) << "known once";
    }
  }
}

// Marks values as encrypted and counts how often it reads them.
class CountingTransformer final : public Transformer {
 public:
  Outcome<Plain, std::string> TransformFromStorage(const base::SharedBytes& data,
                                                   const TransformContext&) const override {
    ++reads;
    if (broken) return std::string("no matching key");
    return Plain{.data = base::SharedBytes(std::string(data.view().substr(kPrefix.size())))};
  }
  Outcome<base::SharedBytes, std::string> TransformToStorage(const base::SharedBytes& data,
                                                             const TransformContext&) const override {
    return base::SharedBytes(std::string(kPrefix) + std::string(data.view()));
  }

  mutable std::atomic<int> reads{0};
  std::atomic<bool> broken{false};

 private:
  static constexpr std::string_view kPrefix = "k8s:enc:";
};

TEST(StoreTest, GetLatestFromEtcdDecryptsWhatTheCacheHas) {
  async::IOPool io{1};
  const auto await = [&](auto task) { return asio::co_spawn(io.Next(), std::move(task), asio::use_future).get(); };
  base::FakeClock clock;
  for (const bool embedded : {true, false}) {
    SCOPED_TRACE(embedded);
    const auto memory = kv::memory::Open();
    testing::FailingKV kv(*memory, embedded);
    LeaseManager leases(kv, clock);
    const testing::LineCodec codec;
    CountingTransformer transformer;
    Store store(StoreParts{.kv = kv, .codec = codec, .transformer = transformer, .leases = leases},
                StoreOptions{.resource_prefix = "/pods"});
    base::Arena arena;
    Value object = Value::Map(arena);
    object.EnsureMap(arena, "metadata").Set(arena, "name", "a");
    const auto created = await(store.Create("/pods/a", object, 0));
    ASSERT_TRUE(created.ok());
    const int before = transformer.reads;
    const auto latest = await(store.GetLatest("/pods/a", *created));
    ASSERT_TRUE(latest.ok());
    EXPECT_EQ(latest->get(), created->get()) << "encoded forms are shared";
    EXPECT_EQ(transformer.reads - before, embedded ? 0 : 1);
    transformer.broken = true;
    EXPECT_EQ(await(store.GetLatest("/pods/a", *created)).ok(), embedded);
  }
}

}  // namespace
}  // namespace keelson::storage
