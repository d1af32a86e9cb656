#include "kv/mvcc/store.h"

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <tuple>

#include "kv/mvcc/core.h"
#include "kv/mvcc/watch.h"

namespace keelson::kv::mvcc {
namespace {

constexpr const char* kEtcdVersion = "3.6.5";  // whose semantics this store has

bool PostProcessed(const RangeRequest& request) {
  return request.sort_order != SortOrder::kNone || request.min_mod_revision != 0 || request.max_mod_revision != 0 ||
         request.min_create_revision != 0 || request.max_create_revision != 0;
}

bool WithinBounds(const RangeRequest& request, const KeyValue& kv) {
  return (request.min_mod_revision == 0 || kv.mod_revision >= request.min_mod_revision) &&
         (request.max_mod_revision == 0 || kv.mod_revision <= request.max_mod_revision) &&
         (request.min_create_revision == 0 || kv.create_revision >= request.min_create_revision) &&
         (request.max_create_revision == 0 || kv.create_revision <= request.max_create_revision);
}

// Equal ones are in the order of keys, whichever way the rest is sorted.
bool Less(SortTarget target, const KeyValue& a, const KeyValue& b, bool descend) {
  const auto by = [&](const auto& left, const auto& right) {
    if (left == right) return a.key < b.key;
    return descend ? right < left : left < right;
  };
  switch (target) {
    case SortTarget::kKey:
      return by(a.key, b.key);
    case SortTarget::kVersion:
      return by(a.version, b.version);
    case SortTarget::kCreateRevision:
      return by(a.create_revision, b.create_revision);
    case SortTarget::kModRevision:
      return by(a.mod_revision, b.mod_revision);
    case SortTarget::kValue:
      return by(a.value.view(), b.value.view());
  }
  return false;
}

}  // namespace

// With `physical`, completes once old versions are dropped.
class CompactTask final : public Task {
 public:
  CompactTask(Core& core, Revision revision, bool physical, async::Callback<Result<Revision>> done)
      : Task(0), core_(core), revision_(revision), physical_(physical), done_(std::move(done)) {}
  void Apply() override { result_.emplace(core_.ApplyCompact(revision_)); }
  void Complete(const Error* failure) override {
    if (failure != nullptr) {
      done_(*failure);
    } else if (physical_ && result_->ok()) {
      core_.trim_waiters_.push_back(std::move(done_));
    } else {
      done_(*std::move(result_));
    }
  }
  static void Submit(Core& core, Revision revision, bool physical, async::Callback<Result<Revision>> done) {
    core.Enqueue(std::make_unique<CompactTask>(core, revision, physical, std::move(done)));
  }

 private:
  Core& core_;
  const Revision revision_;
  const bool physical_;
  async::Callback<Result<Revision>> done_;
  std::optional<Result<Revision>> result_;
};

Result<Revision> Core::ResolveRevision(Revision asked, Revision current, Revision oldest) const {
  if (asked > current) return MakeError(ErrorCode::kFutureRevision);
  if (asked <= 0) return current;
  if (asked < oldest) {
    Error error = MakeError(ErrorCode::kCompacted);
    error.compact_revision = oldest;
    return error;
  }
  return asked;
}

void Core::Gather(const RangeRequest& request, Revision at, RangeResponse& response, Missing& missing) const {
  const bool all = PostProcessed(request);
  const std::size_t limit =
      request.count_only ? 0 : (request.limit > 0 && !all ? static_cast<std::size_t>(request.limit) : kUnlimited);
  const bool values = !request.count_only && (!request.keys_only || (all && request.sort_target == SortTarget::kValue));
  std::vector<std::pair<std::size_t, const Version*>> absent;
  index.ForEach(request.key, request.range_end, at, [&](const Entry& entry, const Version& version) {
    ++response.count;
    if (response.kvs.size() >= limit) return;
    KeyValue& kv = response.kvs.emplace_back();
    kv.key = entry.first;
    kv.create_revision = version.create;
    kv.mod_revision = version.mod;
    kv.version = version.version;
    kv.lease = version.lease;
    if (!values) return;
    if (version.resident()) {
      kv.value = version.value;
    } else {
      absent.emplace_back(response.kvs.size() - 1, &version);
    }
  });
  missing.locations.reserve(absent.size());
  missing.targets.reserve(absent.size());
  for (const auto& [at_index, version] : absent) missing.Add(*version, &response.kvs[at_index].value);
}

void Core::FinishRange(const RangeRequest& request, RangeResponse& response) {
  if (PostProcessed(request)) {
    std::erase_if(response.kvs, [&](const KeyValue& kv) { return !WithinBounds(request, kv); });
    if (request.sort_order != SortOrder::kNone) {
      const bool descend = request.sort_order == SortOrder::kDescend;
      std::ranges::sort(response.kvs, [&](const KeyValue& left, const KeyValue& right) {
        return Less(request.sort_target, left, right, descend);
      });
    }
    if (request.limit > 0 && response.kvs.size() > static_cast<std::size_t>(request.limit)) {
      response.kvs.resize(static_cast<std::size_t>(request.limit));
      response.more = true;
    }
  } else if (!request.count_only && request.limit > 0) {
    response.more = response.count > request.limit;
  }
  if (request.keys_only) {
    for (KeyValue& kv : response.kvs) kv.value = SharedBytes();
  }
}

Result<void> Core::FillOnWriter(Missing& missing) {
  for (std::size_t i = 0; i < missing.locations.size(); ++i) {
    KS_TRY(*missing.targets[i], backend->Read(missing.locations[i]));
  }
  return {};
}

Awaitable<Result<void>> Core::FillOnPool(Missing& missing) {
  if (!options.executor) return pool->Run([&missing] { return missing.Fill(); });
  return async::Suspend<Result<void>>([this, &missing](async::Callback<Result<void>> done) {
    options.executor(Work::kRead, [&missing, done = std::move(done)]() mutable { done(missing.Fill()); });
  });
}

Awaitable<Result<RangeResponse>> Core::Range(RangeRequest request) {
  KS_CO_RETURN_IF_ERROR(CheckRange(request));
  RangeResponse response;
  Missing missing;
  {
    std::shared_lock guard(lock);
    Revision at = request.revision;
    if (!held.contains(at)) {
      KS_CO_TRY(at, ResolveRevision(request.revision, visible, compact));
    }
    Gather(request, at, response, missing);
    response.revision = visible;
    if (!missing.empty()) missing.view = backend->Pin();
  }
  if (!missing.empty()) {
    auto filled = co_await FillOnPool(missing);
    if (!filled.ok()) co_return std::move(filled).error();
  }
  FinishRange(request, response);
  co_return response;
}

EmbeddedStore::EmbeddedStore(std::shared_ptr<Core> core) : core_(std::move(core)) {}
EmbeddedStore::~EmbeddedStore() { core_->Stop(); }

Result<std::unique_ptr<EmbeddedStore>> EmbeddedStore::Open(std::unique_ptr<Backend> backend, Options options) {
  auto core = std::make_shared<Core>(std::move(backend), options);
  KS_RETURN_IF_ERROR(core->Start());
  return std::make_unique<EmbeddedStore>(std::move(core));
}

Awaitable<Result<RangeResponse>> EmbeddedStore::Range(RangeRequest request) { return core_->Range(std::move(request)); }

std::optional<Revision> EmbeddedStore::TryModRevision(std::string_view key) {
  std::shared_lock guard(core_->lock);
  const Entry* const entry = core_->index.Find(key);
  const Version* const version = entry != nullptr ? Index::At(entry->second, core_->visible) : nullptr;
  return version != nullptr ? version->mod : 0;
}

Awaitable<Result<TxnResponse>> EmbeddedStore::Txn(TxnRequest request) {
  KS_CO_RETURN_IF_ERROR(CheckTxn(request, core_->options.limits));
  const std::size_t bytes = WriteBytes(request);
  co_return co_await core_->Submit<TxnResponse>(
      bytes, [core = core_.get(), request = std::move(request)] { return core->ApplyTxn(request); });
}

void EmbeddedStore::Txn(TxnRequest request, std::move_only_function<void(Result<TxnResponse>)> done) {
  if (auto checked = CheckTxn(request, core_->options.limits); !checked.ok()) {
    done(std::move(checked).error());
    return;
  }
  const std::size_t bytes = WriteBytes(request);
  core_->Submit<TxnResponse>(
      bytes, [core = core_.get(), request = std::move(request)] { return core->ApplyTxn(request); }, std::move(done));
}

std::unique_ptr<Watcher> EmbeddedStore::Watch(WatchRequest request) {
  return std::make_unique<HistoryWatcher>(core_, std::move(request));
}

Awaitable<Result<Revision>> EmbeddedStore::Compact(Revision revision, bool physical) {
  return async::Suspend<Result<Revision>>(
      [core = core_.get(), revision, physical](async::Callback<Result<Revision>> done) {
        CompactTask::Submit(*core, revision, physical, std::move(done));
      });
}

Awaitable<Result<Revision>> EmbeddedStore::CurrentRevision() {
  std::shared_lock guard(core_->lock);
  co_return core_->visible;
}

Awaitable<Result<Lease>> EmbeddedStore::LeaseGrant(std::int64_t ttl_seconds, LeaseID id) {
  return core_->Submit<Lease>(0, [core = core_.get(), ttl_seconds, id] { return core->ApplyGrant(ttl_seconds, id); });
}

Awaitable<Result<Revision>> EmbeddedStore::LeaseRevoke(LeaseID id) {
  return core_->Submit<Revision>(0, [core = core_.get(), id] { return core->ApplyRevoke(id); });
}

Awaitable<Result<Lease>> EmbeddedStore::LeaseKeepAlive(LeaseID id) {
  return core_->Submit<Lease>(0, [core = core_.get(), id]() -> Result<Lease> {
    std::lock_guard guard(core->lock);
    const auto ttl = core->lessor.Renew(id, core->options.clock->Monotonic());
    if (!ttl) return MakeError(ErrorCode::kLeaseNotFound);
    return Lease{.id = id, .granted_ttl = *ttl, .remaining_ttl = *ttl};
  });
}

Awaitable<Result<Lease>> EmbeddedStore::LeaseTimeToLive(LeaseID id, bool keys) {
  std::shared_lock guard(core_->lock);
  auto lease = core_->lessor.Get(id, keys, core_->options.clock->Monotonic());
  co_return lease ? *std::move(lease) : Lease{.id = id, .remaining_ttl = -1};
}

Awaitable<Result<std::vector<LeaseID>>> EmbeddedStore::Leases() {
  std::shared_lock guard(core_->lock);
  co_return core_->lessor.List();
}

Awaitable<Result<StoreStatus>> EmbeddedStore::Status() {
  StoreStatus status{.version = kEtcdVersion};
  {
    std::shared_lock guard(core_->lock);
    status.revision = core_->visible;
    status.compact_revision = std::max<Revision>(core_->compact, 0);
    status.db_size = static_cast<std::int64_t>(core_->index.resident_bytes());
    status.db_size_in_use = status.db_size;
  }
  if (core_->backend) {
    const Space space = core_->backend->GetSpace();
    status.db_size = space.total;
    status.db_size_in_use = space.in_use;
  }
  co_return status;
}

void EmbeddedStore::Tick() { core_->Tick(); }
Backend* EmbeddedStore::backend() const { return core_->backend.get(); }
HeldRevision EmbeddedStore::HoldRevision() {
  const Revision revision = core_->HoldRevision();
  return {.revision = revision,
          .hold = std::shared_ptr<void>(nullptr, [core = core_, revision](void*) { core->ReleaseRevision(revision); })};
}

WriteHealth EmbeddedStore::write_health() const { return core_->write_health(); }

}  // namespace keelson::kv::mvcc
