// The fixture of the contract suite, and what an implementation has to give it.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/io_pool.h"
#include "kv/kv.h"

namespace keelson::kv {

// One store under test.
class Harness {
 public:
  virtual ~Harness() = default;
  virtual Store& store() = 0;
  // Lets `seconds` pass for leases. In real time if the clock cannot be moved.
  virtual void Advance(int seconds) = 0;
  virtual bool fresh() const { return false; }    // no writes before this test
  virtual bool cluster() const { return false; }  // several members, which may be behind each other
  virtual std::size_t members() const { return 1; }
  // Closes the store and opens it again; false when it cannot.
  virtual bool Reopen() { return false; }
};

struct HarnessParam {
  std::string name;
  std::function<std::unique_ptr<Harness>()> make;  // null result: skipped
  std::string skip_reason;
};

class Contract : public ::testing::TestWithParam<HarnessParam> {
 protected:
  static constexpr auto kPatience = std::chrono::seconds(60);  // of a slow and busy machine

  void SetUp() override;
  void TearDown() override;

  Store& store() { return harness_->store(); }
  std::string Key(std::string_view name) const { return prefix_ + std::string(name); }
  std::string PrefixEndOfAll() const { return PrefixEnd(prefix_); }

  template <class T>
  std::future<T> Spawn(Awaitable<T> task) {
    return asio::co_spawn(io_->Next(), std::move(task), asio::use_future);
  }
  template <class T>
  T Await(std::future<T> future) {
    if (future.wait_for(kPatience) != std::future_status::ready) {
      ADD_FAILURE() << "no answer within " << kPatience.count() << " s";
      std::abort();  // The coroutine refers to this test; nothing can be cleaned up.
    }
    return future.get();
  }
  template <class T>
  T Await(Awaitable<T> task) {
    return Await(Spawn(std::move(task)));
  }

  // Does something again and again until the answer is there: a server learns of a watch some time after Watch().
  template <class T, class Again>
  T AwaitWhile(std::future<T> future, std::chrono::milliseconds period, Again again) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (future.wait_for(period) != std::future_status::ready && std::chrono::steady_clock::now() < end) again();
    return Await(std::move(future));
  }

  // Short forms; they fail the test when the store answers with an error.
  Revision Put(std::string_view name, std::string_view value, LeaseID lease = 0);
  Revision Delete(std::string_view name);
  std::optional<KeyValue> Get(std::string_view name, Revision revision = 0);
  RangeResponse List(RangeRequest request = {});  // of everything under the prefix unless the request names a key
  Revision Now();
  // Makes every member of a cluster apply everything up to now: watches, statuses and lists of leases are served by any
  // member from its own state.
  void Settle();
  Result<TxnResponse> Txn(TxnRequest request) { return Await(store().Txn(std::move(request))); }
  Result<RangeResponse> TryRange(RangeRequest request) { return Await(store().Range(std::move(request))); }
  std::unique_ptr<Watcher> WatchAll(Revision start = 0, bool prev_kv = false);
  std::unique_ptr<Watcher> WatchKey(std::string_view name, Revision start = 0, bool prev_kv = false);
  // The next `count` events of the watch, whatever the responses they come in.
  std::vector<Event> Take(Watcher& watcher, std::size_t count);
  Op PutOp(std::string_view name, std::string_view value);
  Op GetOp(std::string_view name);
  Op DeleteOp(std::string_view name);
  kv::Compare ModIs(std::string_view name, Revision revision);

  std::unique_ptr<Harness> harness_;
  std::unique_ptr<async::IOPool> io_;
  std::string prefix_;
};

// "put k=v@rev" with names relative to the prefix, for readable expectations.
std::string Describe(const Event& event, std::string_view prefix);
std::vector<std::string> Names(const RangeResponse& response, std::string_view prefix);

}  // namespace keelson::kv
