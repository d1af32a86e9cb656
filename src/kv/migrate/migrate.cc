#include "kv/migrate/migrate.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <chrono>

namespace keelson::kv::migrate {
namespace {

constexpr std::int64_t kPageKeys = 500;
constexpr std::size_t kReadKeys = 64;  // values held at once, each at most what a request may carry
constexpr std::size_t kTxnBytes = 512 * 1024;
constexpr Revision kScratchBatch = 20'000;
constexpr auto kKeepAliveEvery = std::chrono::seconds(4);
constexpr const char* kScratchKey = "keelson/migrate/scratch";
const std::string kFirst(1, '\0');  // as a range's key and end: everything

Error Refused(std::string message) { return {.code = ErrorCode::kInvalidArgument, .message = std::move(message)}; }
std::string Text(std::int64_t number) { return std::to_string(number); }

// Writes of the scratch key that run at once; each is one revision, whichever comes first.
struct Scratch {
  Scratch(Store& store_in, const asio::any_io_executor& executor) : store(store_in), done(executor) {}
  Store& store;
  Revision left = 0;
  std::size_t running = 0;
  Result<void> outcome;
  asio::steady_timer done;  // cancelled by the last
};

Awaitable<void> WriteScratch(std::shared_ptr<Scratch> shared) {
  while (shared->left > 0 && shared->outcome.ok()) {
    --shared->left;
    TxnRequest request{.success = {Op::Put({.key = kScratchKey})}};
    auto answer = co_await shared->store.Txn(std::move(request));
    if (!answer.ok()) shared->outcome = std::move(answer).error();
  }
  if (--shared->running == 0) shared->done.cancel();
}

// Every key of the range that the target has and that is not scratch.
Awaitable<Result<std::vector<std::string>>> KeysBetween(Store& store, std::string first, std::string last) {
  std::vector<std::string> keys;
  RangeRequest page{.key = std::move(first), .range_end = last + kFirst, .limit = kPageKeys, .keys_only = true};
  for (bool more = true; more;) {
    RangeRequest request = page;
    KS_CO_TRY(RangeResponse answer, co_await store.Range(std::move(request)));
    more = answer.more;
    if (more) page.key = answer.kvs.back().key + kFirst;
    for (KeyValue& kv : answer.kvs) keys.push_back(std::move(kv.key));
  }
  co_return keys;
}

}  // namespace

// Leases of the target must not end while their keys still exist in the source. Everything on one executor.
struct Migration::KeepAlive {
  KeepAlive(Store& store_in, const asio::any_io_executor& executor) : store(store_in), timer(executor) {}
  Store& store;
  std::set<LeaseID> leases;
  asio::steady_timer timer;
  bool stopped = false;

  static Awaitable<void> Run(std::shared_ptr<KeepAlive> self) {
    while (!self->stopped) {
      self->timer.expires_after(kKeepAliveEvery);
      co_await self->timer.async_wait(kNoThrow);
      const std::vector<LeaseID> leases(self->leases.begin(), self->leases.end());
      for (const LeaseID id : leases) {
        if (self->stopped) co_return;
        IgnoreError(co_await self->store.LeaseKeepAlive(id),
                    "a lease that is gone shows when a key is written with it");
      }
    }
  }
};

Migration::Migration(Store& from, Store& to, Options options) : from_(from), to_(to), options_(std::move(options)) {}

Migration::~Migration() {
  if (!keep_alive_) return;
  keep_alive_->stopped = true;
  keep_alive_->timer.cancel();
}

Awaitable<Result<void>> Migration::Start() {
  const auto executor = co_await asio::this_coro::executor;
  keep_alive_ = std::make_shared<KeepAlive>(to_, executor);
  asio::co_spawn(executor, KeepAlive::Run(keep_alive_), asio::detached);

  KS_CO_TRY(at_, co_await to_.CurrentRevision());
  KS_CO_TRY(const Revision revision, co_await from_.CurrentRevision());
  RangeRequest count{.key = kFirst, .range_end = kFirst, .count_only = true};
  KS_CO_TRY(const RangeResponse existing, co_await to_.Range(std::move(count)));
  if (existing.count != 0) {
    if (at_ > revision)
      co_return Refused("the target is not empty, and its revision " + Text(at_) + " is beyond the source's " +
                        Text(revision) + ": it is no earlier copy of the source");
    KS_CO_RETURN_IF_ERROR(co_await Compare(at_));
    applied_ = report_.from_revision = at_;
    options_.progress("the target is a copy of the source at revision " + Text(at_));
    co_return Result<void>();
  }
  report_.from_revision = applied_ = revision;
  KS_CO_TRY(const Revisions keys, co_await ListKeys(revision));
  report_.same_revisions = keys.empty() ? at_ <= revision : at_ < keys.front().first;
  KS_CO_RETURN_IF_ERROR(co_await (report_.same_revisions ? CopyAtOwnRevisions(keys) : CopyBeyond(keys)));
  report_.keys = static_cast<std::int64_t>(keys.size());
  // The target's intermediate revisions must not be watched as history.
  if (at_ > 1) KS_CO_RETURN_IF_ERROR(co_await to_.Compact(at_, false));
  options_.progress("copied " + Text(report_.keys) + " keys of revision " + Text(revision) +
                    (report_.same_revisions ? ", each at its own revision" : ", to revision " + Text(at_)));
  co_return Result<void>();
}

// The keys of both, page by page. The first difference is named.
Awaitable<Result<void>> Migration::Compare(Revision at) {
  RangeRequest page{.key = kFirst, .range_end = kFirst, .limit = kPageKeys, .revision = at};
  for (bool more = true; more;) {
    RangeRequest first = page;
    RangeRequest second = page;
    auto ours = co_await from_.Range(std::move(first));
    if (!ours.ok() && ours.error().code == ErrorCode::kCompacted)
      co_return Refused("the source no longer has revision " + Text(at) +
                        ", to which the target was copied: start again with an empty target");
    if (!ours.ok()) co_return std::move(ours).error();
    KS_CO_TRY(const RangeResponse theirs, co_await to_.Range(std::move(second)));
    const std::size_t size = std::max(ours->kvs.size(), theirs.kvs.size());
    for (std::size_t i = 0; i < size; ++i) {
      const KeyValue* a = i < ours->kvs.size() ? &ours->kvs[i] : nullptr;
      const KeyValue* b = i < theirs.kvs.size() ? &theirs.kvs[i] : nullptr;
      if (a != nullptr && b != nullptr && a->key == b->key && a->mod_revision == b->mod_revision &&
          a->value.view() == b->value.view()) {
        if (b->lease != 0) keep_alive_->leases.insert(b->lease);
        continue;
      }
      co_return Refused("the target is not empty and no copy of the source at revision " + Text(at) + ": key \"" +
                        (a != nullptr && (b == nullptr || a->key <= b->key) ? a->key : b->key) + "\" differs");
    }
    more = ours->more;
    if (more) page.key = ours->kvs.back().key + kFirst;
  }
  co_return Result<void>();
}

Awaitable<Result<Migration::Revisions>> Migration::ListKeys(Revision at) {
  Revisions keys;
  RangeRequest page{.key = kFirst, .range_end = kFirst, .limit = kPageKeys, .revision = at, .keys_only = true};
  for (bool more = true; more;) {
    RangeRequest request = page;
    KS_CO_TRY(RangeResponse answer, co_await from_.Range(std::move(request)));
    more = answer.more;
    if (more) page.key = answer.kvs.back().key + kFirst;
    for (KeyValue& kv : answer.kvs) keys.emplace_back(kv.mod_revision, std::move(kv.key));
  }
  std::ranges::sort(keys);
  co_return keys;
}

// The values of keys[begin, end) at the revision that is copied, as puts.
Awaitable<Result<std::vector<Op>>> Migration::ReadKeys(const Revisions& keys, std::size_t begin, std::size_t end) {
  TxnRequest read;
  for (std::size_t i = begin; i < end; ++i)
    read.success.push_back(Op::Range({.key = keys[i].second, .revision = applied_}));
  KS_CO_TRY(TxnResponse answer, co_await from_.Txn(std::move(read)));
  std::vector<Op> puts;
  for (OpResponse& response : answer.responses) {
    if (response.range.kvs.size() != 1) co_return Error{.code = ErrorCode::kInternal, .message = "a key has vanished"};
    KeyValue& kv = response.range.kvs[0];
    KS_CO_TRY(const LeaseID lease, co_await EnsureLease(kv.lease));
    puts.push_back(Op::Put({.key = std::move(kv.key), .value = std::move(kv.value), .lease = lease}));
  }
  co_return puts;
}

// Each key when the target is at its revision; the revisions between belong to the scratch key, which goes with the
// last.
Awaitable<Result<void>> Migration::CopyAtOwnRevisions(const Revisions& keys) {
  Revision own = 0;  // revisions that keys are written at
  for (std::size_t i = 0; i < keys.size(); ++i) own += i == 0 || keys[i].first != keys[i - 1].first ? 1 : 0;
  if (applied_ - at_ - own > options_.scratch_writes_max) {
    co_return Refused(
        "the source is at revision " + Text(applied_) + " and the target at " + Text(at_) +
        ", too far to move by writing: make the target with etcdutl snapshot restore --bump-revision, then migrate");
  }
  std::size_t done = 0;
  while (done < keys.size()) {
    const std::size_t end = std::min(done + kReadKeys, keys.size());
    KS_CO_TRY(std::vector<Op> puts, co_await ReadKeys(keys, done, end));
    // One transaction of the source may have written more keys than are read at once; they stay together.
    std::size_t stop = end;
    while (stop < keys.size() && keys[stop].first == keys[end - 1].first) ++stop;
    for (std::size_t at = end; at < stop; at += kReadKeys) {
      KS_CO_TRY(std::vector<Op> more, co_await ReadKeys(keys, at, std::min(at + kReadKeys, stop)));
      std::ranges::move(more, std::back_inserter(puts));
    }
    for (std::size_t i = done; i < stop;) {
      const Revision revision = keys[i].first;
      KS_CO_RETURN_IF_ERROR(co_await MoveTo(revision - 1));
      std::vector<Op> ops;
      for (; i < stop && keys[i].first == revision; ++i) ops.push_back(std::move(puts[i - done]));
      const bool last = revision == applied_;
      // The scratch key must be there when the very last revision is one that only its deletion can fill.
      if (!last && !scratch_ && ops.size() < options_.txn_ops_max) {
        ops.push_back(Op::Put({.key = kScratchKey}));
        scratch_ = true;
      } else if (last && scratch_ && ops.size() < options_.txn_ops_max) {
        ops.push_back(Op::DeleteRange({.key = kScratchKey}));
        scratch_ = false;
      }
      KS_CO_RETURN_IF_ERROR(co_await Write(std::move(ops)));
      if (at_ != revision) co_return Refused("somebody else writes to the target: it is at revision " + Text(at_));
    }
    done = stop;
    options_.copied(done, keys.size());
  }
  KS_CO_RETURN_IF_ERROR(co_await MoveTo(applied_ - 1));
  if (at_ < applied_) {
    std::vector<Op> ops;
    ops.push_back(scratch_ ? Op::DeleteRange({.key = kScratchKey}) : Op::Put({.key = kScratchKey}));
    scratch_ = !scratch_;
    KS_CO_RETURN_IF_ERROR(co_await Write(std::move(ops)));
  }
  co_return Result<void>();
}

// In the order of their revisions, but at new ones.
Awaitable<Result<void>> Migration::CopyBeyond(const Revisions& keys) {
  if (at_ <= applied_ && applied_ - at_ > options_.scratch_writes_max)
    co_return Refused("the source is at revision " + Text(applied_) + " and the target at " + Text(at_) +
                      ", too far to move by writing");
  KS_CO_RETURN_IF_ERROR(co_await MoveTo(applied_));
  std::vector<Op> ops;
  if (scratch_) ops.push_back(Op::DeleteRange({.key = kScratchKey}));
  scratch_ = false;
  std::size_t bytes = 0;
  for (std::size_t done = 0; done < keys.size(); done += kReadKeys) {
    KS_CO_TRY(std::vector<Op> puts, co_await ReadKeys(keys, done, std::min(done + kReadKeys, keys.size())));
    options_.copied(done, keys.size());
    for (Op& put : puts) {
      const std::size_t size = put.put.key.size() + put.put.value.size();
      if (ops.size() + 1 >= options_.txn_ops_max || (!ops.empty() && bytes + size > kTxnBytes)) {
        KS_CO_RETURN_IF_ERROR(co_await Write(std::exchange(ops, {})));
        bytes = 0;
      }
      bytes += size;
      ops.push_back(std::move(put));
    }
  }
  if (!ops.empty()) KS_CO_RETURN_IF_ERROR(co_await Write(std::move(ops)));
  co_return Result<void>();
}

// Each write of the scratch key is one revision; the contract has no other way to advance a store's revision.
Awaitable<Result<void>> Migration::MoveTo(Revision revision) {
  const auto executor = co_await asio::this_coro::executor;
  while (at_ < revision) {
    auto shared = std::make_shared<Scratch>(to_, executor);
    const Revision steps = std::min(revision - at_, kScratchBatch);
    shared->left = steps;
    shared->running = std::min(options_.scratch_clients, static_cast<std::size_t>(steps));
    shared->done.expires_at(asio::steady_timer::time_point::max());
    for (std::size_t i = shared->running; i > 0; --i) asio::co_spawn(executor, WriteScratch(shared), asio::detached);
    if (shared->running > 0) co_await shared->done.async_wait(kNoThrow);
    KS_CO_RETURN_IF_ERROR(std::move(shared->outcome));
    scratch_ = true;
    KS_CO_TRY(const Revision now, co_await to_.CurrentRevision());
    if (now != at_ + steps) co_return Refused("somebody else writes to the target: it is at revision " + Text(now));
    at_ = now;
    if (steps == kScratchBatch) options_.progress("moved the target to revision " + Text(at_));
  }
  co_return Result<void>();
}

Awaitable<Result<void>> Migration::Write(std::vector<Op> ops) {
  TxnRequest request{.success = std::move(ops)};
  KS_CO_TRY(const TxnResponse answer, co_await to_.Txn(std::move(request)));
  at_ = answer.revision;
  co_return Result<void>();
}

Awaitable<Result<LeaseID>> Migration::EnsureLease(LeaseID id) {
  if (id == 0 || keep_alive_->leases.contains(id)) co_return id;
  auto lease = co_await from_.LeaseTimeToLive(id, false);
  if (!lease.ok() && lease.error().code != ErrorCode::kLeaseNotFound) co_return std::move(lease).error();
  // It has ended in the source: the deletion of its keys is on its way.
  if (!lease.ok() || lease->remaining_ttl < 0) co_return LeaseID{0};
  auto granted = co_await to_.LeaseGrant(std::max(lease->granted_ttl, options_.lease_ttl_min), id);
  if (!granted.ok() && granted.error().code != ErrorCode::kLeaseExists) co_return std::move(granted).error();
  keep_alive_->leases.insert(id);
  ++report_.leases;
  co_return id;
}

// One revision of the source as operations of one transaction. Deletions of neighbours become one, because a single
// deletion in the source may have had more keys than a transaction may have operations.
Awaitable<Result<std::vector<Op>>> Migration::ApplyOps(const std::vector<Event>& events) {
  std::vector<Op> ops;
  std::vector<std::string> deleted;
  for (const Event& event : events) {
    if (event.type == Event::Type::kDelete) {
      deleted.push_back(event.kv.key);
      continue;
    }
    KS_CO_TRY(const LeaseID lease, co_await EnsureLease(event.kv.lease));
    ops.push_back(Op::Put({.key = event.kv.key, .value = event.kv.value, .lease = lease}));
  }
  if (scratch_) ops.push_back(Op::DeleteRange({.key = kScratchKey}));
  if (ops.size() + deleted.size() <= options_.txn_ops_max) {
    for (std::string& key : deleted) ops.push_back(Op::DeleteRange({.key = std::move(key)}));
    co_return ops;
  }
  std::ranges::sort(deleted);
  KS_CO_TRY(const auto present, co_await KeysBetween(to_, deleted.front(), deleted.back()));
  std::size_t at = 0;
  for (std::size_t i = 0; i < deleted.size();) {
    while (at < present.size() && present[at] < deleted[i]) ++at;
    const std::string first = deleted[i];
    std::string last = first;
    for (; i < deleted.size() && at < present.size() && present[at] == deleted[i]; ++i, ++at) last = deleted[i];
    if (last == first && i < deleted.size() && deleted[i] == first) ++i;  // The target does not have it.
    ops.push_back(Op::DeleteRange({.key = first, .range_end = last + kFirst}));
  }
  if (ops.size() > options_.txn_ops_max)
    co_return Refused("revision " + Text(events.front().kv.mod_revision) + " of the source changed " +
                      Text(static_cast<std::int64_t>(events.size())) +
                      " keys at once: give the target a larger --max-txn-ops");
  co_return ops;
}

Awaitable<Result<void>> Migration::Apply(const std::vector<Event>& events) {
  const Revision revision = events.front().kv.mod_revision;
  KS_CO_TRY(std::vector<Op> ops, co_await ApplyOps(events));
  const Revision expected = at_ + 1;
  KS_CO_RETURN_IF_ERROR(co_await Write(std::move(ops)));
  scratch_ = false;
  applied_ = report_.from_revision = revision;
  ++report_.changes;
  if (at_ != expected || (report_.same_revisions && at_ != revision))
    co_return Refused("somebody else writes to the target: it is at revision " + Text(at_));
  co_return Result<void>();
}

// Follows the source until `until` was applied; 0: until Stop().
Awaitable<Result<void>> Migration::CatchUp(Revision until) {
  if (until != 0 && applied_ >= until) co_return Result<void>();
  const auto watch = from_.Watch({.key = kFirst, .range_end = kFirst, .start_revision = applied_ + 1});
  {
    std::lock_guard guard(mutex_);
    if (until == 0 && stopped_) co_return Result<void>();
    if (until == 0) watch_ = watch.get();
  }
  Result<void> outcome;
  while (outcome.ok() && (until == 0 || applied_ < until)) {
    auto response = co_await watch->Next();
    if (!response.ok()) {
      if (until != 0 || response.error().code != ErrorCode::kCanceled) outcome = std::move(response).error();
      break;
    }
    std::vector<Event> one;
    for (Event& event : response->events) {
      if (!one.empty() && one.front().kv.mod_revision != event.kv.mod_revision) {
        outcome = co_await Apply(one);
        one.clear();
        if (!outcome.ok()) break;
      }
      one.push_back(std::move(event));
    }
    if (outcome.ok() && !one.empty()) outcome = co_await Apply(one);
  }
  std::lock_guard guard(mutex_);
  watch_ = nullptr;
  co_return outcome;
}

Awaitable<Result<void>> Migration::Follow() { return CatchUp(0); }

void Migration::Stop() {
  std::lock_guard guard(mutex_);
  stopped_ = true;
  if (watch_ != nullptr) watch_->Cancel();
}

Awaitable<Result<void>> Migration::DropUnusedLeases() {
  const std::vector<LeaseID> leases(keep_alive_->leases.begin(), keep_alive_->leases.end());
  for (const LeaseID id : leases) {
    auto lease = co_await to_.LeaseTimeToLive(id, true);
    if (!lease.ok() || lease->remaining_ttl < 0 || !lease->keys.empty()) continue;
    keep_alive_->leases.erase(id);
    IgnoreError(co_await to_.LeaseRevoke(id), "it has no keys and ends by itself");
  }
  co_return Result<void>();
}

Awaitable<Result<Report>> Migration::Finish() {
  KS_CO_TRY(const Revision until, co_await from_.CurrentRevision());
  KS_CO_RETURN_IF_ERROR(co_await CatchUp(until));
  if (scratch_) {
    std::vector<Op> ops{Op::DeleteRange({.key = kScratchKey})};
    KS_CO_RETURN_IF_ERROR(co_await Write(std::move(ops)));
    scratch_ = false;
  }
  KS_CO_RETURN_IF_ERROR(co_await DropUnusedLeases());
  report_.to_revision = at_;
  co_return report_;
}

}  // namespace keelson::kv::migrate
