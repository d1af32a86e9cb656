// One suite for every implementation of storage::Interface: what an implementation has to give it, and the fixture.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "async/io_pool.h"
#include "base/fake_clock.h"
#include "kv/kv.h"
#include "storage/interface.h"

namespace keelson::storage {

class Harness {
 public:
  virtual ~Harness() = default;
  virtual Interface& storage() = 0;
  virtual kv::Store& kv() = 0;
  virtual base::FakeClock& clock() = 0;
  virtual void Tick() {}  // time has passed
  virtual bool cached() const { return false; }
};

struct HarnessParam {
  std::string name;
  std::function<std::unique_ptr<Harness>(async::IOPool&)> make;
};

// Reads a stream from a test's thread.
class StreamReader {
 public:
  explicit StreamReader(std::unique_ptr<WatchStream> stream);
  ~StreamReader() { stream_.reset(); }
  // The next event; nullopt at the end. Fails the test when nothing comes.
  std::optional<WatchEvent> Next();
  // "ADDED default/a@3", "BOOKMARK @7 end", "ERROR 410 text", "END"
  std::string NextText();
  bool Pending();  // nothing is there now
  std::uint64_t woken() const;

 private:
  struct Signal {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t woken = 0;
  };
  std::unique_ptr<WatchStream> stream_;
  std::shared_ptr<Signal> signal_ = std::make_shared<Signal>();
  std::optional<WatchEvent> ahead_;
};

std::string ToText(const WatchEvent& event);

class Contract : public ::testing::TestWithParam<HarnessParam> {
 protected:
  static constexpr auto kPatience = std::chrono::seconds(60);

  void SetUp() override;
  void TearDown() override;

  Interface& storage() { return harness_->storage(); }
  kv::Store& kv() { return harness_->kv(); }
  bool cached() const { return harness_->cached(); }

  template <class T>
  T Await(Awaitable<T> task) {
    auto future = asio::co_spawn(io_->Next(), std::move(task), asio::use_future);
    if (future.wait_for(kPatience) != std::future_status::ready) {
      ADD_FAILURE() << "no answer";
      std::abort();  // The coroutine refers to this test; nothing can be cleaned up.
    }
    return future.get();
  }

  struct Spec {
    std::string name;
    std::string name_space = "default";
    std::string app;
    std::string node;
    std::string data;
    std::string uid = "u";
  };
  static std::string Key(const Spec& spec) { return "/pods/" + spec.name_space + "/" + spec.name; }
  static Value Object(base::Arena& arena, const Spec& spec);
  ObjectPtr MustCreate(const Spec& spec);
  ObjectPtr MustUpdate(const Spec& spec);
  ObjectPtr MustDelete(const Spec& spec);
  ObjectList MustList(std::string key, ListOptions options);
  std::unique_ptr<StreamReader> MustWatch(std::string key, ListOptions options);
  static std::string Names(const ObjectList& list);
  static SelectionPredicate Select(std::string_view labels, std::string_view fields);

  std::unique_ptr<async::IOPool> io_;
  std::unique_ptr<Harness> harness_;
};

}  // namespace keelson::storage
