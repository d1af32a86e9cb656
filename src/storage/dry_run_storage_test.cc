#include "storage/dry_run_storage.h"

#include <gtest/gtest.h>

#include <boost/asio/use_future.hpp>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "kv/memory/memory.h"
#include "storage/contract_suite/contract.h"
#include "storage/store.h"
#include "testing/line_codec.h"

namespace keelson::storage {
namespace {

constexpr const char* kKey = "/pods/default/a";

Awaitable<meta::Result<Updated>> Return(Updated updated) { co_return updated; }
Awaitable<meta::Result<Updated>> Refuse() { co_return meta::NewBadRequest("no"); }
Awaitable<meta::Result<void>> RefuseDeletion() { co_return meta::NewBadRequest("no"); }

class DryRun : public ::testing::Test {
 protected:
  template <class T>
  T Await(Awaitable<T> task) {
    return asio::co_spawn(io_.Next(), std::move(task), asio::use_future).get();
  }
  Value Pod(std::string_view data) {
    Value object = Value::Map(arena_);
    Value metadata = object.EnsureMap(arena_, "metadata");
    metadata.Set(arena_, "name", "a");
    metadata.Set(arena_, "namespace", "default");
    metadata.Set(arena_, "uid", "u1");
    object.Set(arena_, "data", Value::String(arena_, data));
    return object;
  }
  std::uint64_t MustCreate() {
    auto created = Await(store_->Create(kKey, Pod("old"), 0));
    EXPECT_TRUE(created.ok());
    return (*created)->resource_version();
  }
  std::string Stored() {
    auto got = Await(store_->Get(kKey, {}));
    return got.ok() ? std::string((*got)->stored().view()) : "";
  }

  async::IOPool io_{1};
  base::FakeClock clock_;
  base::Arena arena_;
  std::unique_ptr<kv::Store> kv_ = kv::memory::Open();
  std::shared_ptr<testing::LineCodec> codec_ = std::make_shared<testing::LineCodec>();
  LeaseManager leases_{*kv_, clock_};
  std::shared_ptr<Store> store_ = std::make_shared<Store>(StoreParts{.kv = *kv_, .codec = *codec_, .leases = leases_},
                                                          StoreOptions{.resource_prefix = "/pods"});
  DryRunStorage dry_run_{store_, codec_};
};

TEST_F(DryRun, CreateStoresNothing) {
  const auto created = Await(dry_run_.Create(kKey, Pod("new"), 0, {}));
  ASSERT_TRUE(created.ok());
  EXPECT_EQ((*created)->attributes().name, "a");
  EXPECT_EQ((*created)->resource_version(), 0u);
  EXPECT_EQ(Stored(), "");
}

TEST_F(DryRun, CreateKeepsTheResourceVersionThatWasSent) {
  Value pod = Pod("new");
  pod["metadata"].Set(arena_, "resourceVersion", "7");
  const auto created = Await(dry_run_.Create(kKey, pod, 0, {}));
  ASSERT_TRUE(created.ok());
  EXPECT_EQ((*created)->resource_version(), 7u);
}

TEST_F(DryRun, CreateOfAnExistingKey) {
  MustCreate();
  EXPECT_EQ(Await(dry_run_.Create(kKey, Pod("new"), 0, {})).error().code, ErrorCode::kKeyExists);
}

TEST_F(DryRun, UpdateAnswersWithTheNewObjectAndStoresNothing) {
  const std::uint64_t version = MustCreate();
  const std::string before = Stored();
  const auto updated = Await(dry_run_.GuaranteedUpdate(
      kKey, false, {}, [&](const ObjectPtr&) { return Return({.object = Pod("new")}); }, nullptr, {}));
  ASSERT_TRUE(updated.ok());
  EXPECT_EQ((*updated)->resource_version(), version);
  EXPECT_NE((*updated)->stored().view().find("data=new"), std::string_view::npos);
  EXPECT_EQ(Stored(), before);
}

TEST_F(DryRun, UpdateThatCreatesKeepsTheResourceVersionThatWasSent) {
  Value pod = Pod("new");
  pod["metadata"].Set(arena_, "resourceVersion", "7");
  const auto made = Await(dry_run_.GuaranteedUpdate(
      kKey, true, {}, [&](const ObjectPtr&) { return Return({.object = pod}); }, nullptr, {}));
  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)->resource_version(), 7u);
}

TEST_F(DryRun, UpdateThatLeavesTheObject) {
  MustCreate();
  const auto left = Await(dry_run_.GuaranteedUpdate(
      kKey, false, {},
      [&](const ObjectPtr&) { return Return({.object = Pod("new"), .action = Updated::Action::kLeave}); }, nullptr,
      {}));
  ASSERT_TRUE(left.ok());
  EXPECT_NE((*left)->stored().view().find("data=old"), std::string_view::npos);
}

TEST_F(DryRun, UpdateChecksPreconditionsAndTheCallback) {
  const auto update = [&](const ObjectPtr&) { return Return({.object = Pod("new")}); };
  EXPECT_EQ(Await(dry_run_.GuaranteedUpdate(kKey, false, {}, update, nullptr, {})).error().code,
            ErrorCode::kKeyNotFound);
  EXPECT_TRUE(Await(dry_run_.GuaranteedUpdate(kKey, true, {}, update, nullptr, {})).ok());
  MustCreate();
  EXPECT_EQ(Await(dry_run_.GuaranteedUpdate(kKey, false, {.uid = "u2"}, update, nullptr, {})).error().code,
            ErrorCode::kInvalidObject);
  const auto refused =
      Await(dry_run_.GuaranteedUpdate(kKey, false, {}, [](const ObjectPtr&) { return Refuse(); }, nullptr, {}));
  EXPECT_EQ(refused.error().code, ErrorCode::kStatus);
}

TEST_F(DryRun, DeleteChecksAndDeletesNothing) {
  EXPECT_EQ(Await(dry_run_.Delete(kKey, {}, nullptr, nullptr, {})).error().code, ErrorCode::kKeyNotFound);
  const std::uint64_t version = MustCreate();
  const auto deleted = Await(dry_run_.Delete(kKey, {.uid = "u1"}, nullptr, nullptr, {}));
  ASSERT_TRUE(deleted.ok());
  EXPECT_EQ((*deleted)->resource_version(), version);
  EXPECT_EQ(Await(dry_run_.Delete(kKey, {.uid = "u2"}, nullptr, nullptr, {})).error().code, ErrorCode::kInvalidObject);
  const auto refused = [](const ObjectPtr&) { return RefuseDeletion(); };
  EXPECT_EQ(Await(dry_run_.Delete(kKey, {}, refused, nullptr, {})).error().code, ErrorCode::kStatus);
  EXPECT_NE(Stored(), "");
}

// The Store itself: an update that leaves the object writes no revision.
TEST_F(DryRun, StoreLeavesTheObject) {
  const std::uint64_t version = MustCreate();
  const auto left = Await(store_->GuaranteedUpdate(kKey, false, {}, [&](const ObjectPtr&) {
    return Return({.object = Pod("new"), .action = Updated::Action::kLeave});
  }));
  ASSERT_TRUE(left.ok());
  EXPECT_EQ((*left)->resource_version(), version);
  EXPECT_EQ(*Await(store_->GetCurrentResourceVersion()), version);
}

}  // namespace
}  // namespace keelson::storage
