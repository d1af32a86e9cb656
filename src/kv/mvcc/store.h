// A kv::Store inside this process: etcd's semantics in memory over a backend that persists it.
//
// clang-format off
//   Txn, Compact, leases ──> queue ──> writer: apply to the index ─> one commit of all ─> publish ─> wake watchers, answer callers
//   Range, Watch         ──> the index at the last published revision; values not in memory come from the backend, on a pool
// clang-format on
//
// No change is visible to any reader before it is durable. After a failed commit the store refuses writes and still
// serves reads; it tries to recover by itself once a second (recovery.cc).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/random.h"
#include "kv/kv.h"
#include "kv/mvcc/backend.h"
#include "kv/mvcc/txn_check.h"

namespace keelson::kv::mvcc {

class Core;  // kv/mvcc/core.h

// For a simulation that owns all scheduling: runs `work` later, a write never while another one runs. A read may run
// while a write does.
enum class Work : std::uint8_t { kWrite, kRead };
using Executor = std::function<void(Work kind, std::move_only_function<void()> work)>;

struct Options {
  const base::Clock* clock = &base::Clock::Real();  // must outlive the store
  base::Random* random = &base::Random::Real();     // of lease IDs, used by the writer; must outlive the store
  Limits limits;
  std::size_t resident_bytes_max =
      std::size_t{8} * 1024 * 1024;                      // values kept in memory, the youngest; without a backend all
  std::size_t queue_max = 65536;                         // waiting writes; more get kTooManyRequests
  std::int64_t lease_ttl_min = 2;                        // seconds; what etcd has with its default election timeout
  std::chrono::milliseconds progress_interval{600'000};  // between progress responses of a watch with progress_notify
  // Empty: threads of the store's own. Else none is started; time passes through Tick() only; and the store is
  // destroyed while none of its work runs or waits to be run.
  Executor executor;
};

struct WriteHealth {
  bool refuses_writes = false;  // a write failed, and the store has not recovered yet
  std::uint64_t failures = 0;   // of writes to the backend, since it was opened
};

struct HeldRevision {
  Revision revision = 0;
  std::shared_ptr<void> hold;  // until the last copy goes
};

// Thread safety: as kv::Store. Destruction answers what is pending with kClosed; not on an I/O thread.
class EmbeddedStore final : public Store {
 public:
  explicit EmbeddedStore(std::shared_ptr<Core> core);
  ~EmbeddedStore() override;

  // `backend` null keeps everything in memory only.
  static Result<std::unique_ptr<EmbeddedStore>> Open(std::unique_ptr<Backend> backend, Options options);

  Awaitable<Result<RangeResponse>> Range(RangeRequest request) override;
  std::optional<Revision> TryModRevision(std::string_view key) override;
  Awaitable<Result<TxnResponse>> Txn(TxnRequest request) override;
  // The same for callers that are not coroutines. `done` is called once, by the writer thread or before this returns:
  // it hands the answer on to another thread and does nothing else.
  void Txn(TxnRequest request, std::move_only_function<void(Result<TxnResponse>)> done);
  std::unique_ptr<Watcher> Watch(WatchRequest request) override;
  Awaitable<Result<Revision>> Compact(Revision revision, bool physical) override;
  Awaitable<Result<Revision>> CurrentRevision() override;
  Awaitable<Result<Lease>> LeaseGrant(std::int64_t ttl_seconds, LeaseID id) override;
  Awaitable<Result<Revision>> LeaseRevoke(LeaseID id) override;
  Awaitable<Result<Lease>> LeaseKeepAlive(LeaseID id) override;
  Awaitable<Result<Lease>> LeaseTimeToLive(LeaseID id, bool keys) override;
  Awaitable<Result<std::vector<LeaseID>>> Leases() override;
  Awaitable<Result<StoreStatus>> Status() override;
  bool embedded() const override { return true; }

  // Looks at the clock now instead of when a timer says so: for tests that moved it.
  void Tick();
  Backend* backend() const;  // null without one
  WriteHealth write_health() const;
  // The revision now, which stays readable (by ranges) through compactions: for snapshots, which may take longer than
  // two of them.
  HeldRevision HoldRevision();

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace keelson::kv::mvcc
