// The generic Store over real storage on the memory kv: names, versions, deletion, dry run, hooks. Rules of single
// kinds are tested with the recordings (registry/testing).
#include "registry/store.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "codec/json.h"
#include "registry/testing/memory_store.h"

namespace keelson::registry {
namespace {

Task<Value> ReturnValue(Value object) { co_return object; }
Task<void> Refuse() { co_return meta::NewBadRequest("refused"); }

using Resource = testing::MemoryStore;

class StoreTest : public ::testing::Test {
 protected:
  template <class T>
  T Await(Awaitable<T> work) {
    return asio::co_spawn(io_.Next(), std::move(work), asio::use_future).get();
  }
  Resource Make(std::string_view group, std::string_view plural,
                std::function<void(Store::Options&)> customize = nullptr) {
    return Resource(group, plural, clock_, customize);
  }
  Value JSON(std::string_view text) {
    auto decoded = codec::DecodeJSON(context_.arena, context_.arena.Copy(text));
    EXPECT_TRUE(decoded.ok());
    return decoded->value;
  }
  meta::Result<WriteResult> Create(const Resource& in, std::string_view json, bool dry_run = false) {
    return Await(in.store()->Create(context_, JSON(json), nullptr, dry_run));
  }
  meta::Result<WriteResult> Put(const Resource& in, std::string_view json, UpdateParameters parameters = {}) {
    const Value object = JSON(json);
    const std::string name(object.Get("metadata", "name").as_string());
    const UpdatedObject updated = [object](Value) { return ReturnValue(object); };
    return Await(in.store()->Update(context_, name, updated, nullptr, nullptr, std::move(parameters)));
  }
  meta::Result<DeleteResult> Delete(const Resource& in, std::string name, DeleteOptions options = {}) {
    return Await(in.store()->Delete(context_, context_.info.name_space, std::move(name), std::move(options), nullptr));
  }
  Value Read(const Resource& in, std::string name) {
    auto got = Await(in.store()->Get(context_.info.name_space, std::move(name), ""));
    if (!got.ok()) return {};
    return *in.store()->Decode(context_.arena, *got);
  }
  Value Decoded(const Resource& in, const ObjectPtr& object) { return *in.store()->Decode(context_.arena, object); }

  StoreTest() { context_.info.name_space = "default"; }

  async::IOPool io_{1};
  base::FakeClock clock_;
  request::Context context_;
};

constexpr std::string_view kConfigMap =
    R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"1"}})";

TEST_F(StoreTest, CreateFillsSystemFieldsAndRefusesASecondOne) {
  const Resource maps = Make("", "configmaps");
  const auto created = Create(maps, kConfigMap);
  ASSERT_TRUE(created.ok()) << created.error().message();
  EXPECT_TRUE(created->created);
  const Value metadata = Read(maps, "a")["metadata"];
  EXPECT_EQ(metadata["namespace"].as_string(), "default");
  EXPECT_FALSE(metadata["uid"].as_string().empty());
  EXPECT_EQ(metadata["creationTimestamp"].as_string(), FormatTime(clock_.Now()));
  EXPECT_EQ(Create(maps, kConfigMap).error().message(), "configmaps \"a\" already exists");
}

TEST_F(StoreTest, CreateInAnotherNamespaceIsRefused) {
  const Resource maps = Make("", "configmaps");
  const auto created =
      Create(maps, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b"}})");
  EXPECT_EQ(created.error().message(),
            "the namespace of the provided object does not match the namespace sent on the request");
}

TEST_F(StoreTest, CreateGeneratesNames) {
  const Resource maps = Make("", "configmaps");
  const auto created = Create(maps, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"generateName":"a-"}})");
  ASSERT_TRUE(created.ok());
  EXPECT_EQ(Decoded(maps, created->object).Get("metadata", "name").as_string().size(), 7u);
}

TEST_F(StoreTest, CreateReportsThatTheExistingObjectIsBeingDeleted) {
  const Resource maps = Make("", "configmaps");
  ASSERT_TRUE(
      Create(maps, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","finalizers":["x/y"]}})").ok());
  ASSERT_TRUE(Delete(maps, "a").ok());
  EXPECT_EQ(Create(maps, kConfigMap).error().message(), "object is being deleted: configmaps \"a\" already exists");
}

TEST_F(StoreTest, DryRunsStoreNothing) {
  const Resource maps = Make("", "configmaps");
  ASSERT_TRUE(Create(maps, kConfigMap, true).ok());
  EXPECT_TRUE(Read(maps, "a").is_null());
  ASSERT_TRUE(Create(maps, kConfigMap).ok());
  const auto written = Put(maps, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"k":"2"}})",
                           {.dry_run = true});
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(Decoded(maps, written->object).Get("data", "k").as_string(), "2");
  EXPECT_EQ(Read(maps, "a").Get("data", "k").as_string(), "1");
  const auto deleted = Delete(maps, "a", {.dry_run = true});
  ASSERT_TRUE(deleted.ok());
  EXPECT_TRUE(deleted->deleted);
  EXPECT_FALSE(Read(maps, "a").is_null());
}

TEST_F(StoreTest, UpdateChecksResourceVersionAndUID) {
  const Resource maps = Make("", "configmaps");
  EXPECT_EQ(Put(maps, kConfigMap).error().message(), "configmaps \"a\" not found");
  ASSERT_TRUE(Create(maps, kConfigMap).ok());
  struct Case {
    const char* version;
    const char* message;
  };
  constexpr Case kCases[] = {
      {"999",
       "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to "
       "the latest version and try again"},
      {"x", "strconv.ParseUint: parsing \"x\": invalid syntax"},
      {"99999999999999999999", "strconv.ParseUint: parsing \"99999999999999999999\": value out of range"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.version);
    const auto written = Put(maps, std::string(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a",)") +
                                       R"("resourceVersion":")" + c.version + R"("}})");
    EXPECT_EQ(written.error().message(), c.message);
  }
  EXPECT_EQ(Put(maps, kConfigMap, {.uid = "other"}).error().reason(), meta::StatusReason::kConflict);
}

TEST_F(StoreTest, UpdateWithoutChangeWritesNothing) {
  const Resource maps = Make("", "configmaps");
  const auto created = Create(maps, kConfigMap);
  const auto written = Put(maps, kConfigMap);
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->object->resource_version(), created->object->resource_version());
}

TEST_F(StoreTest, UpdateMayCreateWhereTheKindAllowsIt) {
  const Resource leases = Make("coordination.k8s.io", "leases");
  constexpr std::string_view kLease =
      R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"a"}})";
  const auto created = Put(leases, kLease);
  ASSERT_TRUE(created.ok()) << created.error().message();
  EXPECT_TRUE(created->created);
  const auto strange = Put(leases, R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1",
                                       "metadata":{"name":"b","uid":"u"}})");
  EXPECT_EQ(strange.error().message(),
            "Operation cannot be fulfilled on leases.coordination.k8s.io \"b\": uid mismatch: the provided object "
            "specified uid u, and no existing object was found");
}

Awaitable<void> CountDeletion(int& deleted) {
  ++deleted;
  co_return;
}

TEST_F(StoreTest, UpdateThatRemovesTheLastFinalizerDeletes) {
  int deleted = 0;
  const auto count = [&](Store::Options& options) {
    options.after_delete = [&deleted](request::Context&, Value) { return CountDeletion(deleted); };
  };
  const Resource maps = Make("", "configmaps", count);
  ASSERT_TRUE(
      Create(maps, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","finalizers":["x/y"]}})").ok());
  const auto marked = Delete(maps, "a");
  ASSERT_TRUE(marked.ok());
  EXPECT_FALSE(marked->deleted);
  EXPECT_EQ(Read(maps, "a").Get("metadata", "deletionTimestamp").as_string(), FormatTime(clock_.Now()));
  ASSERT_TRUE(Put(maps, kConfigMap, {.dry_run = true}).ok());
  EXPECT_FALSE(Read(maps, "a").is_null());
  EXPECT_EQ(deleted, 0);
  const auto written = Put(maps, kConfigMap);
  ASSERT_TRUE(written.ok()) << written.error().message();
  EXPECT_TRUE(Read(maps, "a").is_null());
  EXPECT_EQ(deleted, 1);
}

TEST_F(StoreTest, DeletePreconditions) {
  const Resource maps = Make("", "configmaps");
  ASSERT_TRUE(Create(maps, kConfigMap).ok());
  EXPECT_EQ(Delete(maps, "a", {.uid = "other"}).error().reason(), meta::StatusReason::kConflict);
  EXPECT_EQ(Delete(maps, "a", {.resource_version = "999"}).error().reason(), meta::StatusReason::kConflict);
  EXPECT_TRUE(Delete(maps, "a")->deleted);
  EXPECT_EQ(Delete(maps, "a").error().message(), "configmaps \"a\" not found");
}

TEST_F(StoreTest, DeleteByPropagationPolicy) {
  struct Case {
    const char* policy;
    const char* finalizer;
  };
  for (const Case& c : {Case{"Foreground", "foregroundDeletion"}, Case{"Orphan", "orphan"}}) {
    SCOPED_TRACE(c.policy);
    const Resource maps = Make("", "configmaps");
    ASSERT_TRUE(Create(maps, kConfigMap).ok());
    EXPECT_FALSE(Delete(maps, "a", {.propagation_policy = c.policy})->deleted);
    const Value finalizers = Read(maps, "a").Get("metadata", "finalizers");
    ASSERT_EQ(finalizers.size(), 1u);
    EXPECT_EQ(finalizers.items()[0].as_string(), c.finalizer);
    // Background takes it away again, and with it the last thing that held the object.
    EXPECT_TRUE(Delete(maps, "a", {.propagation_policy = "Background"})->deleted);
    EXPECT_TRUE(Read(maps, "a").is_null());
  }
}

TEST_F(StoreTest, PodsHaveAGracePeriod) {
  const Resource pods = Make("", "pods");
  constexpr std::string_view kPod = R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"spec":{"nodeName":"n",
      "terminationGracePeriodSeconds":30,"restartPolicy":"Always","dnsPolicy":"ClusterFirst",
      "containers":[{"name":"c","image":"i","imagePullPolicy":"Always","terminationMessagePath":"/dev/termination-log",
      "terminationMessagePolicy":"File"}]}})";
  const auto created = Create(pods, kPod);
  ASSERT_TRUE(created.ok()) << created.error().message();
  EXPECT_FALSE(Delete(pods, "a")->deleted);
  EXPECT_EQ(Read(pods, "a").Get("metadata", "deletionGracePeriodSeconds").as_int(), 30);
  EXPECT_EQ(Read(pods, "a").Get("metadata", "deletionTimestamp").as_string(),
            FormatTime(clock_.Now() + std::chrono::seconds(30)));
  // A second deletion shortens it; a longer period changes nothing.
  EXPECT_FALSE(Delete(pods, "a", {.grace_period_seconds = 60})->deleted);
  EXPECT_FALSE(Delete(pods, "a", {.grace_period_seconds = 5})->deleted);
  EXPECT_EQ(Read(pods, "a").Get("metadata", "deletionGracePeriodSeconds").as_int(), 5);
  const auto tried = Delete(pods, "a", {.grace_period_seconds = 0, .dry_run = true});
  EXPECT_TRUE(tried->deleted);
  EXPECT_EQ(Decoded(pods, tried->object).Get("metadata", "deletionGracePeriodSeconds").as_int(), 0);
  EXPECT_EQ(Read(pods, "a").Get("metadata", "deletionGracePeriodSeconds").as_int(), 5);
  EXPECT_TRUE(Delete(pods, "a", {.grace_period_seconds = 0})->deleted);
  EXPECT_TRUE(Read(pods, "a").is_null());
}

TEST_F(StoreTest, NamespacesWaitForTheirSpecFinalizers) {
  context_.info.name_space = "";
  const Resource namespaces = Make("", "namespaces");
  ASSERT_TRUE(Create(namespaces, R"({"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}})").ok());
  EXPECT_FALSE(Delete(namespaces, "a")->deleted);
  const Value marked = Read(namespaces, "a");
  EXPECT_EQ(marked.Get("status", "phase").as_string(), "Terminating");
  EXPECT_FALSE(marked["metadata"].Has("deletionGracePeriodSeconds"));
  EXPECT_FALSE(Delete(namespaces, "a")->deleted);
}

TEST_F(StoreTest, AdmissionMayRefuse) {
  const Resource maps = Make("", "configmaps");
  const ValidateObject refuse = [](Value) { return Refuse(); };
  EXPECT_EQ(Await(maps.store()->Create(context_, JSON(kConfigMap), refuse, false)).error().message(), "refused");
  ASSERT_TRUE(Create(maps, kConfigMap).ok());
  EXPECT_EQ(Await(maps.store()->Delete(context_, "default", "a", {}, refuse)).error().message(), "refused");
  EXPECT_FALSE(Read(maps, "a").is_null());
}

Awaitable<void> NoteEnd(std::vector<bool>& ends, bool success) {
  ends.push_back(success);
  co_return;
}
Task<Store::Options::Finish> NoteEnds(std::vector<bool>& ends) {
  co_return Store::Options::Finish([&ends](bool success) { return NoteEnd(ends, success); });
}

// Allocation is given back when the write fails, and kept when it succeeds.
TEST_F(StoreTest, HooksGetTheOutcomeOfTheWrite) {
  std::vector<bool> ends;
  const auto hook = [&](Store::Options& options) {
    options.begin_write = [&ends](request::Context&, Value, Value, bool) { return NoteEnds(ends); };
  };
  const Resource maps = Make("", "configmaps", hook);
  ASSERT_TRUE(Create(maps, kConfigMap).ok());
  EXPECT_FALSE(Create(maps, kConfigMap).ok());
  EXPECT_FALSE(Put(maps, R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","labels":{"!":"x"}}})").ok());
  EXPECT_EQ(ends, (std::vector<bool>{true, false, false}));
}

TEST_F(StoreTest, CollectionsAreDeletedPageByPageWithTheirErrors) {
  const Resource maps = Make("", "configmaps");
  for (const char* name : {"a", "b", "c"})
    ASSERT_TRUE(
        Create(maps, std::string(R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":")") + name + "\"}}")
            .ok());
  const auto deleted = Await(maps.store()->DeleteCollection(context_, "default", {}, {}, nullptr, 2));
  ASSERT_TRUE(deleted.ok());
  EXPECT_EQ(deleted->items.size(), 3u);
  EXPECT_TRUE(Read(maps, "b").is_null());
}

}  // namespace
}  // namespace keelson::registry
