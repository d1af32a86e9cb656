#include "kv/snapshot/copy.h"

#include <utility>

#include "kv/snapshot/snapshot.h"

namespace keelson::kv::snapshot {
namespace {

constexpr std::size_t kTxnOps = 100;
constexpr std::size_t kTxnBytes = 512 * 1024;
constexpr const char* kScratchKey = "keelson/migrate/scratch";

Awaitable<Result<Revision>> PutAll(Store& to, std::vector<Op> ops) {
  TxnRequest request{.success = std::move(ops)};
  KS_CO_TRY(const TxnResponse answer, co_await to.Txn(std::move(request)));
  co_return answer.revision;
}

// Each write is one revision; there is no other way to move a store's revision through its contract.
Awaitable<Result<Revision>> MoveBeyond(Store& to, Revision revision, std::int64_t steps_max) {
  KS_CO_TRY(Revision at, co_await to.CurrentRevision());
  if (revision - at > steps_max) {
    co_return Error{.code = ErrorCode::kInvalidArgument,
                    .message = "the source is at revision " + std::to_string(revision) +
                               ", too far to move the target to: restore a snapshot instead"};
  }
  while (at <= revision) {
    std::vector<Op> put{Op::Put({.key = kScratchKey})};
    KS_CO_TRY(at, co_await PutAll(to, std::move(put)));
  }
  std::vector<Op> remove{Op::DeleteRange({.key = kScratchKey})};
  KS_CO_TRY(at, co_await PutAll(to, std::move(remove)));
  co_return at;
}

}  // namespace

Awaitable<Result<CopyInfo>> Copy(Store& from, Store& to, std::int64_t revision_steps_max) {
  CopyInfo info;
  const std::string first(1, '\0');
  RangeRequest count{.key = first, .range_end = first, .count_only = true};
  KS_CO_TRY(const RangeResponse existing, co_await to.Range(std::move(count)));
  if (existing.count != 0)
    co_return Error{.code = ErrorCode::kInvalidArgument, .message = "the target store is not empty"};

  KS_CO_TRY(info.from_revision, co_await from.CurrentRevision());
  KS_CO_TRY(info.to_revision, co_await MoveBeyond(to, info.from_revision, revision_steps_max));
  KS_CO_TRY(const auto leases, co_await from.Leases());
  for (const LeaseID id : leases) {
    KS_CO_TRY(const Lease lease, co_await from.LeaseTimeToLive(id, false));
    if (lease.remaining_ttl < 0) continue;
    KS_CO_RETURN_IF_ERROR(co_await to.LeaseGrant(lease.granted_ttl, id));
    ++info.leases;
  }
  RangeRequest page{.key = first, .range_end = first, .limit = kPageKeys, .revision = info.from_revision};
  for (bool more = true; more;) {
    RangeRequest request = page;
    KS_CO_TRY(RangeResponse answer, co_await from.Range(std::move(request)));
    more = answer.more;
    if (more) page.key = answer.kvs.back().key + first;
    std::vector<Op> ops;
    std::size_t bytes = 0;
    for (KeyValue& kv : answer.kvs) {
      bytes += kv.key.size() + kv.value.size();
      ops.push_back(Op::Put({.key = std::move(kv.key), .value = std::move(kv.value), .lease = kv.lease}));
      ++info.keys;
      if (ops.size() < kTxnOps && bytes < kTxnBytes) continue;
      KS_CO_TRY(info.to_revision, co_await PutAll(to, std::exchange(ops, {})));
      bytes = 0;
    }
    if (!ops.empty()) {
      KS_CO_TRY(info.to_revision, co_await PutAll(to, std::move(ops)));
    }
  }
  // What the target went through on the way is no history that anyone may watch.
  KS_CO_RETURN_IF_ERROR(co_await to.Compact(info.to_revision, false));
  co_return info;
}

}  // namespace keelson::kv::snapshot
