// LIST and GET through the cache are linearizable. Writers own a key each and count up, so that the history of a key is
// known without searching for an order: a read must show every write that was acknowledged before it began, none that
// was begun after it ended, nothing older than a read that ended before it began, and a LIST must be the state at its
// resourceVersion. KEELSON_SEED replays one run, as far as threads allow.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "base/failpoint.h"
#include "base/testing/seeded_random.h"
#include "cacher/cacher_fixture.h"

namespace keelson::cacher {
namespace {

constexpr int kWriters = 3;
constexpr int kReaders = 3;
constexpr int kWrites = 150;  // of each writer

struct Write {
  std::atomic<int> begun{0};
  std::atomic<int> acknowledged{0};
};

class Linearizability : public ::testing::TestWithParam<const char*> {
 protected:
  template <class T>
  T Await(int thread, Awaitable<T> task) {
    return asio::co_spawn(io_.executor(static_cast<std::size_t>(1 + thread % 3)), std::move(task), asio::use_future)
        .get();
  }
  static std::string Name(int writer) { return "w" + std::to_string(writer); }
  static std::string Key(int writer) { return "/pods/default/" + Name(writer); }

  void WriteAll(int writer) {
    Cacher& cacher = harness_->cacher();
    for (int value = 1; value <= kWrites; ++value) {
      base::Arena arena;
      Value object = Value::Map(arena);
      Value metadata = object.EnsureMap(arena, "metadata");
      metadata.Set(arena, "name", Value::String(arena, Name(writer)));
      metadata.Set(arena, "namespace", Value::String(arena, "default"));
      metadata.EnsureMap(arena, "labels").Set(arena, "app", Value::String(arena, std::to_string(value)));
      writes_[writer].begun = value;
      const auto done = value == 1 ? Await(writer, cacher.Create(Key(writer), object, 0))
                                   : Await(writer, cacher.GuaranteedUpdate(Key(writer), false, {}, [&](const auto&) {
                                       return Replace(object);
                                     }));
      ASSERT_TRUE(done.ok()) << done.error().ToString();
      {
        std::lock_guard lock(mutex_);
        revisions_[writer][(*done)->resource_version()] = value;
      }
      writes_[writer].acknowledged = value;
    }
  }
  static Awaitable<meta::Result<storage::Updated>> Replace(Value object) {
    co_return storage::Updated{.object = object};
  }

  using Values = std::array<int, kWriters>;
  template <class Member>
  Values Now(Member member) const {
    Values values;
    for (int i = 0; i < kWriters; ++i) values[i] = (writes_[i].*member).load();
    return values;
  }
  static int ValueOf(const storage::Object& object) {
    for (const auto& [key, value] : object.attributes().labels) {
      if (key == "app") return std::atoi(std::string(value).c_str());
    }
    return 0;
  }

  struct List {
    std::uint64_t revision;
    Values values;
  };
  // Reads until all is written. `not_older`: with the resourceVersion of the last read.
  void ReadAll(int reader, std::uint64_t seed) {
    const auto random = base::Seeded(seed);
    Cacher& cacher = harness_->cacher();
    std::uint64_t last = 0;
    for (bool over = false; !over;) {
      over = Now(&Write::acknowledged) == done_;
      const Values acknowledged = Now(&Write::acknowledged);
      const Values seen = Seen();
      const int only = static_cast<int>(random->Below(kWriters));
      const bool get = random->Below(2) == 0;
      // Either the newest state, or one not older than what was read last.
      const std::string at_least = last > 0 && random->Below(3) == 0 ? std::to_string(last) : "";
      Values values{};
      if (get) {
        const auto got = Await(reader, cacher.Get(Key(only), {.resource_version = at_least}));
        if (got.ok()) {
          values[only] = ValueOf(**got);
          last = std::max(last, (*got)->resource_version());
        } else {
          ASSERT_EQ(got.error().code, storage::ErrorCode::kKeyNotFound) << got.error().ToString();
        }
      } else {
        const auto list = Await(reader, cacher.GetList("/pods", {.resource_version = at_least}));
        ASSERT_TRUE(list.ok()) << list.error().ToString();
        for (const auto& object : list->items) values[object->attributes().name[1] - '0'] = ValueOf(*object);
        ASSERT_GE(list->resource_version, last);
        last = list->resource_version;
        std::lock_guard lock(mutex_);
        lists_.push_back({list->resource_version, values});
      }
      const Values begun = Now(&Write::begun);
      for (int i = 0; i < kWriters; ++i) {
        if (get && i != only) continue;
        ASSERT_LE(values[i], begun[i]) << "a write that was not begun";
        if (!at_least.empty()) continue;
        ASSERT_GE(values[i], acknowledged[i])
            << "an acknowledged write is missing" << (get ? " in a GET" : " in a LIST");
        ASSERT_GE(values[i], seen[i]) << "older than a read that ended before";
      }
      if (at_least.empty()) Saw(values);
    }
  }
  Values Seen() const {
    Values values;
    for (int i = 0; i < kWriters; ++i) values[i] = seen_[i].load();
    return values;
  }
  void Saw(const Values& values) {
    for (int i = 0; i < kWriters; ++i) {
      int before = seen_[i].load();
      while (before < values[i] && !seen_[i].compare_exchange_weak(before, values[i])) {
      }
    }
  }

  async::IOPool io_{4};
  std::unique_ptr<CacherHarness> harness_;
  std::array<Write, kWriters> writes_;
  std::array<std::atomic<int>, kWriters> seen_{};
  Values done_ = [] {
    Values values;
    values.fill(kWrites);
    return values;
  }();
  std::mutex mutex_;
  std::array<std::map<std::uint64_t, int>, kWriters> revisions_;  // guarded; the value after each
  std::vector<List> lists_;                                       // guarded
};

TEST_P(Linearizability, ListAndGetThroughTheCache) {
  const char* seed_text = std::getenv("KEELSON_SEED");
  const std::uint64_t seed = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : base::Random::Real().Next();
  SCOPED_TRACE("KEELSON_SEED=" + std::to_string(seed));
  harness_ = std::make_unique<CacherHarness>(io_, CacherHarness::DefaultOptions(), nullptr, 64 << 20, GetParam());
  // Between a state and its revision the reflector pauses, so that readers run in between.
  base::Failpoints::Arm("cacher/dispatcher/show", [] {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    return false;
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i) threads.emplace_back([this, i] { WriteAll(i); });
  for (int i = 0; i < kReaders; ++i)
    threads.emplace_back([this, i, seed] { ReadAll(i, seed + static_cast<std::uint64_t>(i)); });
  for (auto& thread : threads) thread.join();
  base::Failpoints::Arm("cacher/dispatcher/show", nullptr);
  // Every LIST was the state at its resourceVersion.
  for (const List& list : lists_) {
    for (int i = 0; i < kWriters; ++i) {
      const auto after = revisions_[i].upper_bound(list.revision);
      const int want = after == revisions_[i].begin() ? 0 : std::prev(after)->second;
      ASSERT_EQ(list.values[i], want) << "at resourceVersion " << list.revision;
    }
  }
  EXPECT_GT(lists_.size(), 20U);
  harness_.reset();
}

INSTANTIATE_TEST_SUITE_P(Stores, Linearizability, ::testing::Values("", "3.6.5", "3.4.23"), [](const auto& info) {
  return std::string(info.param).empty() ? "embedded" : "etcd_" + std::to_string(info.index);
});

}  // namespace
}  // namespace keelson::cacher
