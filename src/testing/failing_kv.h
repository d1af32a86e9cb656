// A kv store that goes through to another one, unless told to lose the connection. For robustness tests.
// Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "kv/kv.h"

namespace keelson::testing {

class FailingKV final : public kv::Store {
 public:
  explicit FailingKV(kv::Store& store, bool embedded = true) : store_(store), embedded_(embedded) {}
  // Looks like an etcd of that version. Requests for progress go through all the same.
  FailingKV(kv::Store& store, std::string etcd_version)
      : store_(store), embedded_(etcd_version.empty()), etcd_version_(std::move(etcd_version)) {}

  // Everything fails with kUnavailable until Restore(); watches end with it.
  void Disconnect();
  void Restore();
  // Ends the watches only, once.
  void BreakWatches();
  // Holds back what watches deliver, and progress, until Release().
  void Hold();
  void Release();
  // The next requests for progress stay without an answer, as etcd leaves those of a watch that still reads history.
  void LoseProgressRequests(int count);
  // The value written at `revision` cannot be read by watches: they end with kCorrupt. 0: all can be.
  void Damage(kv::Revision revision);

  Awaitable<kv::Result<kv::RangeResponse>> Range(kv::RangeRequest request) override;
  Awaitable<kv::Result<kv::TxnResponse>> Txn(kv::TxnRequest request) override;
  std::unique_ptr<kv::Watcher> Watch(kv::WatchRequest request) override;
  Awaitable<kv::Result<kv::Revision>> Compact(kv::Revision revision, bool physical) override;
  Awaitable<kv::Result<kv::Revision>> CurrentRevision() override;
  Awaitable<kv::Result<kv::Lease>> LeaseGrant(std::int64_t ttl_seconds, kv::LeaseID id) override;
  Awaitable<kv::Result<kv::Revision>> LeaseRevoke(kv::LeaseID id) override { return store_.LeaseRevoke(id); }
  Awaitable<kv::Result<kv::Lease>> LeaseKeepAlive(kv::LeaseID id) override { return store_.LeaseKeepAlive(id); }
  Awaitable<kv::Result<kv::Lease>> LeaseTimeToLive(kv::LeaseID id, bool keys) override {
    return store_.LeaseTimeToLive(id, keys);
  }
  Awaitable<kv::Result<std::vector<kv::LeaseID>>> Leases() override { return store_.Leases(); }
  Awaitable<kv::Result<kv::StoreStatus>> Status() override;
  bool embedded() const override { return embedded_; }

  std::uint64_t ranges() const { return ranges_.load(); }
  std::uint64_t transactions() const { return transactions_.load(); }
  std::uint64_t watches() const { return watches_.load(); }

 private:
  class BreakableWatcher;
  struct Switch;  // what watchers share with this
  kv::Store& store_;
  const bool embedded_;
  const std::string etcd_version_;  // "": the store's own
  std::shared_ptr<Switch> switch_ = MakeSwitch();
  static std::shared_ptr<Switch> MakeSwitch();
  std::atomic<std::uint64_t> ranges_{0};
  std::atomic<std::uint64_t> transactions_{0};
  std::atomic<std::uint64_t> watches_{0};
};

}  // namespace keelson::testing
