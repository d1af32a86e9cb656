// The fixture of the cacher's own tests.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "cacher/cacher_harness.h"

namespace keelson::cacher {

class CacherTest : public ::testing::Test {
 protected:
  struct Spec {
    std::string name;
    std::string name_space = "default";
    std::string app;
    std::string node;
    std::string data;
  };

  void SetUp() override { harness_ = std::make_unique<CacherHarness>(io_); }
  void TearDown() override { harness_.reset(); }

  CacherHarness& harness() { return *harness_; }
  Cacher& cacher() { return harness_->cacher(); }

  // Another cacher, on a new store.
  void Start(CacherOptions options, std::size_t history_bytes = 64 << 20) {
    harness_.reset();
    harness_ = std::make_unique<CacherHarness>(io_, std::move(options), nullptr, history_bytes);
  }
  // Another cacher, on the same store.
  void Restart(CacherOptions options = CacherHarness::DefaultOptions()) {
    auto memory = harness_->memory();
    harness_.reset();
    harness_ = std::make_unique<CacherHarness>(io_, std::move(options), std::move(memory));
  }

  template <class T>
  std::future<T> Spawn(Awaitable<T> task) {
    return asio::co_spawn(io_.executor(1), std::move(task), asio::use_future);
  }
  template <class T>
  T Await(Awaitable<T> task) {
    return Spawn(std::move(task)).get();
  }

  // Lets time pass until it is so.
  template <class Condition>
    requires std::is_invocable_v<Condition>
  void PassUntil(Condition condition) {
    while (!condition()) {
      harness_->Pass(std::chrono::milliseconds(100));
      std::this_thread::yield();
    }
  }
  template <class T>
  void PassUntil(std::future<T>& future) {
    PassUntil([&] { return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  }
  void PassUntilEvent(storage::StreamReader& watch) {
    PassUntil([&] { return !watch.Pending(); });
  }

  static Value Object(base::Arena& arena, const Spec& spec) {
    Value object = Value::Map(arena);
    Value metadata = object.EnsureMap(arena, "metadata");
    metadata.Set(arena, "name", Value::String(arena, spec.name));
    metadata.Set(arena, "namespace", Value::String(arena, spec.name_space));
    if (!spec.app.empty()) metadata.EnsureMap(arena, "labels").Set(arena, "app", Value::String(arena, spec.app));
    if (!spec.node.empty())
      object.EnsureMap(arena, "fields").Set(arena, "spec.nodeName", Value::String(arena, spec.node));
    object.Set(arena, "data", Value::String(arena, spec.data));
    return object;
  }
  static Awaitable<meta::Result<storage::Updated>> Replace(Value object) {
    co_return storage::Updated{.object = object};
  }
  static std::string Key(const Spec& spec) { return "/pods/" + spec.name_space + "/" + spec.name; }

  storage::ObjectPtr Create(const Spec& spec) {
    base::Arena arena;
    auto created = Await(cacher().Create(Key(spec), Object(arena, spec), 0));
    EXPECT_TRUE(created.ok()) << created.error().ToString();
    return created.ok() ? *created : nullptr;
  }
  storage::ObjectPtr Update(const Spec& spec) {
    base::Arena arena;
    const Value object = Object(arena, spec);
    auto updated = Await(
        cacher().GuaranteedUpdate(Key(spec), false, {}, [&](const storage::ObjectPtr&) { return Replace(object); }));
    EXPECT_TRUE(updated.ok()) << updated.error().ToString();
    return updated.ok() ? *updated : nullptr;
  }
  void Delete(const std::string& name, const std::string& name_space = "default") {
    auto deleted = Await(cacher().Delete("/pods/" + name_space + "/" + name, {}, {}));
    EXPECT_TRUE(deleted.ok()) << deleted.error().ToString();
  }
  storage::ObjectList List(std::string key, storage::ListOptions options) {
    auto list = Await(cacher().GetList(std::move(key), std::move(options)));
    EXPECT_TRUE(list.ok()) << list.error().ToString();
    return list.ok() ? *std::move(list) : storage::ObjectList{};
  }
  std::unique_ptr<storage::StreamReader> Watch(std::string key, storage::ListOptions options) {
    auto stream = Await(cacher().Watch(std::move(key), std::move(options)));
    EXPECT_TRUE(stream.ok()) << stream.error().ToString();
    return stream.ok() ? std::make_unique<storage::StreamReader>(*std::move(stream)) : nullptr;
  }
  // Until the cache has everything that was written so far.
  void Sync() {
    auto list = Await(cacher().GetList("/pods", {}));
    ASSERT_TRUE(list.ok()) << list.error().ToString();
  }

  // Behind the cacher's back, past every fault.
  void PutElsewhere(const std::string& key, std::string_view value = "x") {
    kv::TxnRequest request;
    request.success.push_back(kv::Op::Put({.key = key, .value = kv::SharedBytes(value)}));
    ASSERT_TRUE(Await(harness_->kv().Txn(std::move(request))).ok());
  }
  void PutPodElsewhere(const std::string& name) {
    PutElsewhere("/registry/pods/default/" + name, "line/v1\nname=" + name + "\nnamespace=default\nuid=\ndata=\n");
  }
  void Compact() {
    const auto now = Await(harness_->kv().CurrentRevision());
    IgnoreError(Await(harness_->kv().Compact(*now, true)), "it may be compacted that far already");
  }

  static std::string Names(const storage::ObjectList& list) {
    std::string names;
    for (const auto& object : list.items) names.append(names.empty() ? "" : " ").append(object->attributes().name);
    return names;
  }
  static storage::SelectionPredicate Select(std::string_view labels, std::string_view fields) {
    storage::SelectionPredicate predicate;
    if (!labels.empty())
      predicate.label = std::make_shared<const meta::LabelSelector>(*meta::LabelSelector::Parse(labels));
    if (!fields.empty())
      predicate.field = std::make_shared<const meta::FieldSelector>(*meta::FieldSelector::Parse(fields));
    return predicate;
  }

  async::IOPool io_{2};
  std::unique_ptr<CacherHarness> harness_;
};

}  // namespace keelson::cacher
