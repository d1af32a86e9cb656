// The contract of writes and Get.
#include <atomic>
#include <thread>

#include "storage/contract_suite/contract.h"

namespace keelson::storage {
namespace {

std::string RV(const ObjectPtr& object) { return std::to_string(object->resource_version()); }

TEST_P(Contract, CreateThenGet) {
  const ObjectPtr created = MustCreate({.name = "a", .app = "web"});
  EXPECT_GT(created->resource_version(), 0u);
  EXPECT_EQ(created->key(), "/pods/default/a");
  EXPECT_NE(created->stored().view().find("resourceVersion=" + RV(created)), std::string_view::npos);
  for (const std::string& rv : {std::string(), std::string("0"), RV(created)}) {
    SCOPED_TRACE(rv);
    if (rv == "0" && cached()) continue;  // may be older than the write
    auto got = Await(storage().Get("/pods/default/a", {.resource_version = rv}));
    ASSERT_TRUE(got.ok()) << got.error().ToString();
    EXPECT_EQ((*got)->resource_version(), created->resource_version());
    EXPECT_EQ((*got)->stored(), created->stored());
    EXPECT_EQ((*got)->attributes().labels[0].second, "web");
  }
}

TEST_P(Contract, CreateTwiceIsKeyExists) {
  MustCreate({.name = "a"});
  base::Arena arena;
  auto again = Await(storage().Create("/pods/default/a", Object(arena, {.name = "a"}), 0));
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, ErrorCode::kKeyExists);
  EXPECT_EQ(again.error().ToString(),
            "StorageError: key exists, Code: 2, Key: /registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: "
            "<nil>");
}

TEST_P(Contract, CreateRefusesResourceVersion) {
  base::Arena arena;
  Value object = Object(arena, {.name = "a"});
  object["metadata"].Set(arena, "resourceVersion", "5");
  auto created = Await(storage().Create("/pods/default/a", object, 0));
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().ToString(), "resourceVersion should not be set on objects to be created");
}

TEST_P(Contract, CreateIgnoresANonNumericResourceVersion) {
  base::Arena arena;
  Value object = Object(arena, {.name = "a"});
  object["metadata"].Set(arena, "resourceVersion", "x");
  EXPECT_TRUE(Await(storage().Create("/pods/default/a", object, 0)).ok());
}

TEST_P(Contract, KeysOutsideThePrefixAreRefused) {
  for (const char* key : {"", "/", ".", "..", "../x", "/pods/..", "/pods/../secrets", "/pods/./x", "/secrets/default/a",
                          "/podsx/default/a"}) {
    SCOPED_TRACE(key);
    EXPECT_FALSE(Await(storage().Get(key, {})).ok());
    EXPECT_FALSE(Await(storage().GetList(key, {})).ok());
    EXPECT_FALSE(Await(storage().Watch(key, {})).ok());
    EXPECT_FALSE(Await(storage().Delete(key, {}, {})).ok());
  }
}

TEST_P(Contract, GetMissing) {
  auto got = Await(storage().Get("/pods/default/a", {}));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, ErrorCode::kKeyNotFound);
  EXPECT_EQ(got.error().key, "/registry/pods/default/a");
}

TEST_P(Contract, DeleteReturnsItsRevision) {
  const ObjectPtr created = MustCreate({.name = "a", .data = "x"});
  const ObjectPtr deleted = MustDelete({.name = "a"});
  EXPECT_GT(deleted->resource_version(), created->resource_version());
  EXPECT_NE(deleted->stored().view().find("resourceVersion=" + RV(deleted)), std::string_view::npos);
  EXPECT_EQ(Await(storage().Get("/pods/default/a", {})).error().code, ErrorCode::kKeyNotFound);
  EXPECT_EQ(Await(storage().Delete("/pods/default/a", {}, {})).error().code, ErrorCode::kKeyNotFound);
}

TEST_P(Contract, Preconditions) {
  const ObjectPtr created = MustCreate({.name = "a", .uid = "u1"});
  auto wrong_uid = Await(storage().Delete("/pods/default/a", {.uid = "u2"}, {}));
  ASSERT_FALSE(wrong_uid.ok());
  EXPECT_EQ(wrong_uid.error().code, ErrorCode::kInvalidObject);
  EXPECT_EQ(wrong_uid.error().ToString(),
            "StorageError: invalid object, Code: 4, Key: /registry/pods/default/a, ResourceVersion: 0, "
            "AdditionalErrorMsg: Precondition failed: "
            "UID in precondition: u2, UID in object meta: u1");
  auto wrong_version = Await(storage().Delete("/pods/default/a", {.resource_version = "1000000"}, {}));
  ASSERT_FALSE(wrong_version.ok());
  EXPECT_EQ(
      wrong_version.error().message,
      "Precondition failed: ResourceVersion in precondition: 1000000, ResourceVersion in object meta: " + RV(created));
  EXPECT_TRUE(Await(storage().Delete("/pods/default/a", {.uid = "u1", .resource_version = RV(created)}, {})).ok());
}

Awaitable<meta::Result<void>> Refuse() { co_return meta::NewForbidden({"", "pods"}, "a", "it is precious"); }

TEST_P(Contract, ValidateDeletionStopsIt) {
  MustCreate({.name = "a"});
  auto deleted = Await(storage().Delete("/pods/default/a", {}, [](const ObjectPtr& existing) {
    EXPECT_EQ(existing->attributes().name, "a");
    return Refuse();
  }));
  ASSERT_FALSE(deleted.ok());
  ASSERT_TRUE(deleted.error().status);
  EXPECT_EQ(deleted.error().status->code(), 403);
  EXPECT_TRUE(Await(storage().Get("/pods/default/a", {})).ok());
}

TEST_P(Contract, UpdateChangesAndNoChangeIsNotWritten) {
  const ObjectPtr created = MustCreate({.name = "a", .data = "1"});
  const ObjectPtr updated = MustUpdate({.name = "a", .data = "2"});
  EXPECT_GT(updated->resource_version(), created->resource_version());
  const auto before = *Await(storage().GetCurrentResourceVersion());
  const ObjectPtr same = MustUpdate({.name = "a", .data = "2"});
  EXPECT_EQ(same->resource_version(), updated->resource_version());
  EXPECT_EQ(*Await(storage().GetCurrentResourceVersion()), before);
}

// An object in an older storage form is rewritten by an update without changes, as upstream migrates.
TEST_P(Contract, UnchangedObjectOfAnOlderFormIsRewritten) {
  kv::TxnRequest put;
  put.success.push_back(kv::Op::Put({.key = "/registry/pods/default/a",
                                     .value = kv::SharedBytes("line/v0\nname=a\nnamespace=default\nuid=u\ndata=2\n")}));
  const auto written = Await(kv().Txn(std::move(put)));
  ASSERT_TRUE(written.ok());
  const auto before = static_cast<std::uint64_t>(written->revision);
  auto got = Await(storage().Get("/pods/default/a", {.resource_version = std::to_string(before)}));
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE((*got)->stored().view().starts_with("line/v1\n"));
  const ObjectPtr same = MustUpdate({.name = "a", .data = "2"});
  EXPECT_GT(same->resource_version(), before);
}

TEST_P(Contract, UpdateOfMissing) {
  base::Arena arena;
  const auto update = [&](const ObjectPtr& existing) -> Awaitable<meta::Result<Updated>> {
    EXPECT_FALSE(existing);
    co_return Updated{.object = Object(arena, {.name = "a"})};
  };
  EXPECT_EQ(Await(storage().GuaranteedUpdate("/pods/default/a", false, {}, update)).error().code,
            ErrorCode::kKeyNotFound);
  EXPECT_TRUE(Await(storage().GuaranteedUpdate("/pods/default/a", true, {}, update)).ok());
  EXPECT_TRUE(Await(storage().Get("/pods/default/a", {})).ok());
}

struct Counter {
  std::shared_ptr<base::Arena> arena = std::make_shared<base::Arena>();
  Awaitable<meta::Result<Updated>> operator()(const ObjectPtr& existing) const {
    const std::string_view stored = existing->stored().view();
    const auto at = stored.find("data=") + 5;
    const int number = std::stoi(std::string(stored.substr(at)));
    Value object = Value::Map(*arena);
    Value metadata = object.EnsureMap(*arena, "metadata");
    metadata.Set(*arena, "name", "a");
    metadata.Set(*arena, "namespace", "default");
    object.Set(*arena, "data", Value::String(*arena, std::to_string(number + 1)));
    co_return Updated{.object = object};
  }
};

TEST_P(Contract, ConcurrentUpdatesAllCount) {
  MustCreate({.name = "a", .data = "0"});
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < kEach; ++n) {
        if (!Await(storage().GuaranteedUpdate("/pods/default/a", false, {}, Counter{})).ok()) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  auto got = Await(storage().Get("/pods/default/a", {}));
  ASSERT_TRUE(got.ok());
  EXPECT_NE((*got)->stored().view().find("data=" + std::to_string(kThreads * kEach) + "\n"), std::string_view::npos);
}

TEST_P(Contract, TimeToLiveIsALease) {
  base::Arena arena;
  ASSERT_TRUE(Await(storage().Create("/pods/default/a", Object(arena, {.name = "a"}), 3600)).ok());
  harness_->clock().Advance(std::chrono::seconds(1));
  ASSERT_TRUE(Await(storage().Create("/pods/default/b", Object(arena, {.name = "b"}), 3600)).ok());
  const auto leases = Await(kv().Leases());
  ASSERT_TRUE(leases.ok());
  ASSERT_EQ(leases->size(), 1u);  // shared
  const auto lease = Await(kv().LeaseTimeToLive((*leases)[0], true));
  EXPECT_EQ(lease->granted_ttl, 3660);
  EXPECT_EQ(lease->keys.size(), 2u);
  // An update that says nothing of a time to live takes it off.
  MustUpdate({.name = "a", .data = "x"});
  EXPECT_EQ(Await(kv().LeaseTimeToLive((*leases)[0], true))->keys.size(), 1u);
}

TEST_P(Contract, StatsAndCurrentRevision) {
  const ObjectPtr a = MustCreate({.name = "a"});
  MustCreate({.name = "b", .name_space = "other"});
  EXPECT_EQ(Await(storage().GetStats())->object_count, 2);
  EXPECT_GT(*Await(storage().GetCurrentResourceVersion()), a->resource_version());
}

TEST_P(Contract, BadResourceVersion) {
  MustCreate({.name = "a"});
  EXPECT_FALSE(Await(storage().Get("/pods/default/a", {.resource_version = "x"})).ok());
  auto list = Await(storage().GetList("/pods", {.resource_version = "x"}));
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().status->code(), 400);
  EXPECT_EQ(list.error().ToString(),
            "invalid resource version: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": "
            "invalid syntax");
}

}  // namespace
}  // namespace keelson::storage
