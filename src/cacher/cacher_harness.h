// A Cacher over a Store over a store in memory, with a clock that is moved. For tests.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "async/io_pool.h"
#include "cacher/cacher.h"
#include "kv/memory/memory.h"
#include "storage/contract_suite/contract.h"
#include "storage/store.h"
#include "testing/failing_kv.h"
#include "testing/line_codec.h"

namespace keelson::cacher {

class CacherHarness final : public storage::Harness {
 public:
  // `memory` may be given to simulate another process on the same store. `etcd_version`: the etcd version it reports.
  CacherHarness(async::IOPool& io, CacherOptions options = DefaultOptions(),
                std::shared_ptr<kv::Store> memory = nullptr, std::size_t history_bytes = 64 << 20,
                std::string etcd_version = "")
      : memory_(memory ? std::move(memory) : std::shared_ptr<kv::Store>(kv::memory::Open())),
        failing_(*memory_, std::move(etcd_version)),
        budget_(history_bytes) {
    cacher_ = std::make_unique<Cacher>(store_, io.executor(0), clock_, budget_, std::move(options));
    cacher_->Start();
    WaitReady();
  }
  ~CacherHarness() override { cacher_->Stop(); }

  static CacherOptions DefaultOptions() { return {.trigger_field = "spec.nodeName"}; }

  storage::Interface& storage() override { return *cacher_; }
  kv::Store& kv() override { return *memory_; }
  base::FakeClock& clock() override { return clock_; }
  void Tick() override { cacher_->Tick(); }
  bool cached() const override { return true; }

  Cacher& cacher() { return *cacher_; }
  storage::Store& store() { return store_; }
  testing::FailingKV& failing() { return failing_; }
  const std::shared_ptr<kv::Store>& memory() const { return memory_; }
  HistoryBudget& budget() { return budget_; }

  void Pass(std::chrono::milliseconds time) {
    clock_.Advance(time);
    cacher_->Tick();
  }
  void WaitReady() {
    WaitFor([&] { return cacher_->Ready(); });
  }
  // Until the reflector's thread has brought it about; time does not pass meanwhile.
  template <class Condition>
  static void WaitFor(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }

 private:
  base::FakeClock clock_;
  std::shared_ptr<kv::Store> memory_;
  testing::FailingKV failing_;
  testing::LineCodec codec_;
  storage::LeaseManager leases_{failing_, clock_};
  storage::Store store_{{.kv = failing_, .codec = codec_, .leases = leases_}, {.resource_prefix = "/pods"}};
  HistoryBudget budget_;
  std::unique_ptr<Cacher> cacher_;
};

}  // namespace keelson::cacher
