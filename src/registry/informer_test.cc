#include "registry/informer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <set>

#include "async/event.h"
#include "async/io_pool.h"
#include "testing/line_codec.h"

namespace keelson::registry {
namespace {

using storage::ObjectPtr;
using storage::WatchEvent;
using Type = WatchEvent::Type;

constexpr Strategy kPods{.group = "", .kind = "Pod"};

// Events that were pushed, then pending until more come or the end.
class ScriptedStream final : public storage::WatchStream {
 public:
  struct Script {
    std::mutex mutex;
    std::vector<WatchEvent> events;
    bool ended = false;
    std::function<void()> wake;
  };
  explicit ScriptedStream(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  void Start(std::function<void()> wake) override {
    const std::scoped_lock lock(script_->mutex);
    script_->wake = std::move(wake);
  }
  Poll Next(WatchEvent& event) override {
    const std::scoped_lock lock(script_->mutex);
    if (!script_->events.empty()) {
      event = std::move(script_->events.front());
      script_->events.erase(script_->events.begin());
      return Poll::kEvent;
    }
    return script_->ended ? Poll::kEnd : Poll::kPending;
  }

 private:
  std::shared_ptr<Script> script_;
};

class ScriptedStorage final : public storage::Interface {
 public:
  std::shared_ptr<ScriptedStream::Script> NextWatch() {
    auto script = std::make_shared<ScriptedStream::Script>();
    const std::scoped_lock lock(mutex_);
    scripts_.push_back(script);
    return script;
  }
  Awaitable<storage::Result<std::unique_ptr<storage::WatchStream>>> Watch(std::string, storage::ListOptions) override {
    const std::scoped_lock lock(mutex_);
    if (scripts_.empty()) co_return storage::Error{.code = storage::ErrorCode::kUnreachable};
    auto script = scripts_.front();
    scripts_.erase(scripts_.begin());
    std::unique_ptr<storage::WatchStream> stream = std::make_unique<ScriptedStream>(std::move(script));
    co_return stream;
  }
  Awaitable<storage::Result<ObjectPtr>> Create(std::string, Value, std::uint64_t, telemetry::Caller) override {
    co_return Unused();
  }
  Awaitable<storage::Result<ObjectPtr>> Delete(std::string, storage::Preconditions, storage::ValidateDeletion,
                                               ObjectPtr, telemetry::Caller) override {
    co_return Unused();
  }
  Awaitable<storage::Result<void>> DeleteUnread(std::string) override { co_return Unused(); }
  Awaitable<storage::Result<ObjectPtr>> Get(std::string, storage::GetOptions) override { co_return Unused(); }
  Awaitable<storage::Result<storage::ObjectList>> GetList(std::string, storage::ListOptions) override {
    co_return Unused();
  }
  Awaitable<storage::Result<ObjectPtr>> GuaranteedUpdate(std::string, bool, storage::Preconditions, storage::UpdateFunc,
                                                         ObjectPtr, telemetry::Caller) override {
    co_return Unused();
  }
  Awaitable<storage::Result<storage::Stats>> GetStats() override { co_return Unused(); }
  Awaitable<storage::Result<std::uint64_t>> GetCurrentResourceVersion() override { co_return Unused(); }
  bool Ready() const override { return true; }

 private:
  static storage::Error Unused() { return {.code = storage::ErrorCode::kInternal}; }
  std::mutex mutex_;
  std::vector<std::shared_ptr<ScriptedStream::Script>> scripts_;
};

ObjectPtr Pod(const std::string& name, std::uint64_t resource_version) {
  static const testing::LineCodec codec;
  const auto stored = base::SharedBytes::FromString("line/v1\nname=" + name + "\nnamespace=default\nuid=u\n");
  auto attributes = codec.GetAttrs(stored);
  EXPECT_TRUE(attributes.ok());
  return base::MakeRef<storage::Object>("/pods/default/" + name, resource_version, stored, *std::move(attributes));
}

WatchEvent Event(Type type, const ObjectPtr& object) { return {.type = type, .object = object}; }
WatchEvent EndOfList() { return {.type = Type::kBookmark, .initial_events_end = true}; }

void Push(ScriptedStream::Script& script, std::vector<WatchEvent> events, bool end = false) {
  std::function<void()> wake;
  {
    const std::scoped_lock lock(script.mutex);
    script.events.insert(script.events.end(), events.begin(), events.end());
    script.ended = end;
    wake = script.wake;
  }
  if (wake) wake();
}

// The names a handler currently has, and all of its calls.
class Recorder {
 public:
  Informer::OnChanges handler() {
    return [this](std::vector<Informer::Change>& changes) {
      const std::scoped_lock lock(mutex_);
      for (const auto& change : changes) {
        const std::string name(change.object->attributes().name);
        told_.push_back((change.deleted ? "-" : "+") + name);
        decoded_ = decoded_ || !change.value.is_null();
        change.deleted ? (void)names_.erase(name) : (void)names_.insert(name);
      }
      condition_.notify_all();
    };
  }
  bool WaitFor(const std::set<std::string>& names) {
    std::unique_lock lock(mutex_);
    return condition_.wait_for(lock, std::chrono::seconds(20), [&] { return names_ == names; });
  }
  std::vector<std::string> told() {
    const std::scoped_lock lock(mutex_);
    return told_;
  }
  bool decoded() {
    const std::scoped_lock lock(mutex_);
    return decoded_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  std::set<std::string> names_;
  std::vector<std::string> told_;
  bool decoded_ = false;
};

std::shared_ptr<Store> NewStore(std::shared_ptr<ScriptedStorage> storage) {
  Store::Options options;
  options.resource = {"", "pods"};
  options.kind = {"", "Pod"};
  options.strategy = std::make_shared<RESTStrategy>(kPods);
  options.storage = std::move(storage);
  options.codec = std::make_shared<testing::LineCodec>();
  options.key_root = "/pods";
  return std::make_shared<Store>(std::move(options));
}

struct Fixture {
  std::shared_ptr<ScriptedStorage> storage = std::make_shared<ScriptedStorage>();
  async::IOPool io{1};
  std::shared_ptr<Store> store = NewStore(storage);
};

TEST(Informer, DeletionsBetweenTwoWatchesAreReported) {
  Fixture fixture;
  auto first = fixture.storage->NextWatch();
  auto second = fixture.storage->NextWatch();
  Recorder recorder;
  Informer informer(fixture.store, recorder.handler());
  informer.Start(fixture.io.Next());
  Push(*first, {Event(Type::kAdded, Pod("a", 1)), Event(Type::kAdded, Pod("b", 2)), EndOfList()});
  ASSERT_TRUE(recorder.WaitFor({"a", "b"}));
  // b is deleted while the watch is down; a is unchanged and is not reported again; c is new.
  Push(*first, {}, true);
  Push(*second, {Event(Type::kAdded, Pod("a", 1)), Event(Type::kAdded, Pod("c", 4)), EndOfList()});
  EXPECT_TRUE(recorder.WaitFor({"a", "c"}));
  informer.Stop();
  EXPECT_EQ(recorder.told(), (std::vector<std::string>{"+a", "+b", "+c", "-b"}));
}

TEST(Informer, WatchThatEndsInsideItsListDeletesNothing) {
  Fixture fixture;
  auto first = fixture.storage->NextWatch();
  auto second = fixture.storage->NextWatch();
  auto third = fixture.storage->NextWatch();
  Recorder recorder;
  Informer informer(fixture.store, recorder.handler());
  informer.Start(fixture.io.Next());
  Push(*first, {Event(Type::kAdded, Pod("a", 1)), Event(Type::kAdded, Pod("b", 2)), EndOfList()}, true);
  Push(*second, {Event(Type::kAdded, Pod("c", 3))}, true);
  ASSERT_TRUE(recorder.WaitFor({"a", "b", "c"}));
  Push(*third, {Event(Type::kAdded, Pod("a", 1)), EndOfList()});
  EXPECT_TRUE(recorder.WaitFor({"a"}));
  informer.Stop();
}

TEST(Informer, LateHandlerGetsTheCurrentState) {
  Fixture fixture;
  auto watch = fixture.storage->NextWatch();
  Recorder early;
  Recorder late;
  Informer informer(fixture.store, early.handler());
  EXPECT_FALSE(informer.HasSynced());
  informer.Start(fixture.io.Next());
  Push(*watch, {Event(Type::kAdded, Pod("a", 1)), EndOfList(), Event(Type::kAdded, Pod("b", 2))});
  ASSERT_TRUE(early.WaitFor({"a", "b"}));
  EXPECT_TRUE(informer.HasSynced());
  const auto registration = informer.AddHandler(late.handler(), Informer::Form::kStored);
  EXPECT_TRUE(late.WaitFor({"a", "b"}));
  Push(*watch, {Event(Type::kDeleted, Pod("a", 3))});
  EXPECT_TRUE(late.WaitFor({"b"}));
  EXPECT_TRUE(registration->HasSynced());
  EXPECT_TRUE(early.decoded());
  EXPECT_FALSE(late.decoded());
  informer.Stop();
}

}  // namespace
}  // namespace keelson::registry
