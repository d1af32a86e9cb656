#include "kv/mvcc/core.h"

#include <pthread.h>

#include <algorithm>
#include <shared_mutex>

#include "base/check.h"
#include "base/failpoint.h"

namespace keelson::kv::mvcc {
namespace {
// One commit takes what waits, up to these bounds: a larger one would make the first of them wait too long.
constexpr std::size_t kBatchTasksMax = 4096;
constexpr std::size_t kBatchBytesMax = std::size_t{4} * 1024 * 1024;
constexpr std::size_t kTrimSliceChanges = 4096;
}  // namespace

Result<void> Missing::Fill() {
  KS_TRY(auto values, view->Read(locations));
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = std::move(values[i]);
  return {};
}

Core::Core(std::unique_ptr<Backend> backend_in, Options options_in)
    : options(options_in), backend(std::move(backend_in)), index(backend ? options.resident_bytes_max : kUnlimited) {}

Core::~Core() { Stop(); }

Result<void> Core::Start() {
  if (backend) {
    KS_RETURN_IF_ERROR(backend->Load(*this));
    if (!options.executor) pool = std::make_unique<async::BlockingPool>("kv-read", 2);
  }
  lessor.RenewAll(Now());
  for (const auto& [key, versions] : index.keys()) {
    if (const Version* version = Index::At(versions, kNewest); version != nullptr && version->lease != 0)
      lessor.LoadKey(version->lease, key);
  }
  visible = std::max(visible, compact);
  assigned_ = visible;
  compacting_ = compact;
  next_progress_ = Now() + options.progress_interval;
  if (options.executor) return {};
  writer_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "kv-writer");
    Run();
  });
  return {};
}

void Core::OnRecord(const Record& record) {
  index.Load(record);
  visible = std::max(visible, record.revision);
}

void Core::OnLease(const LeaseRecord& lease) { lessor.Load(lease.id, lease.ttl, Now()); }

void Core::OnCompact(Revision revision) { compact = revision; }

void Core::Stop() {
  {
    std::lock_guard guard(queue_mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  queue_ready_.notify_all();
  if (writer_.joinable()) writer_.join();
  pool.reset();
  const Error closed = MakeError(ErrorCode::kClosed);
  for (auto& task : queue_) task->Complete(&closed);
  queue_.clear();
  for (auto& waiter : trim_waiters_) waiter(closed);
  trim_waiters_.clear();
  WatchHub::Wakes wakes;
  {
    std::lock_guard guard(lock);
    wakes = hub.Close();
  }
  for (auto& wake : wakes) wake(Wake::kLook);
}

void Core::Tick() {
  {
    std::lock_guard guard(queue_mutex_);
    tick_ = true;
  }
  Wake();
}

void Core::Wake() {
  if (!options.executor) return queue_ready_.notify_one();
  std::lock_guard guard(queue_mutex_);
  ScheduleStep();
}

void Core::ScheduleStep() {
  if (std::exchange(scheduled_, true)) return;
  options.executor(Work::kWrite, [this] {
    std::unique_lock guard(queue_mutex_);
    Step(std::move(guard));
    const bool trim = HasToTrim();
    guard = std::unique_lock(queue_mutex_);
    scheduled_ = false;
    if (trim || tick_ || !queue_.empty()) ScheduleStep();
  });
}

void Core::Enqueue(std::unique_ptr<Task> task) {
  std::optional<ErrorCode> refused;
  {
    std::lock_guard guard(queue_mutex_);
    if (stopping_) {
      refused = ErrorCode::kClosed;
    } else if (queue_.size() >= options.queue_max) {
      refused = ErrorCode::kTooManyRequests;
    } else {
      queue_.push_back(std::move(task));
      if (queue_.size() > 1) return;  // The writer was notified already.
    }
  }
  if (refused) {
    const Error error = MakeError(*refused);
    task->Complete(&error);
    return;
  }
  Wake();
}

void Core::Run() {
  for (;;) {
    std::unique_lock guard(queue_mutex_);
    const auto ready = [&] { return stopping_ || tick_ || !queue_.empty(); };
    if (HasToTrim()) {
      // No waiting: old versions are dropped a slice at a time between commits.
    } else {
      auto due = next_progress_;
      // A store that cannot write revokes nothing: leases that stay due must not keep the writer awake.
      if (const auto expiry = lessor.NextExpiry(); expiry && !failed_) due = std::min(due, *expiry);
      if (failed_ && recover_at_) due = std::min(due, *recover_at_);
      const auto wait =
          std::clamp<std::chrono::nanoseconds>(due - Now(), std::chrono::milliseconds(1), std::chrono::hours(1));
      queue_ready_.wait_for(guard, wait, ready);
    }
    if (stopping_) return;
    Step(std::move(guard));
  }
}

void Core::Step(std::unique_lock<std::mutex> guard) {
  tick_ = false;
  std::size_t bytes = 0;
  while (!queue_.empty() && tasks_.size() < kBatchTasksMax && bytes < kBatchBytesMax) {
    bytes += queue_.front()->bytes;
    tasks_.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  guard.unlock();
  if (failed_ && recover_at_ && Now() >= *recover_at_) Recover();
  if (!failed_) ExpireLeases();
  if (!failed_) {
    for (auto& task : tasks_) task->Apply();
    if (!Commit()) Rollback();
  }
  for (auto& task : tasks_) task->Complete(failed_ ? &*failed_ : nullptr);
  tasks_.clear();
  if (HasToTrim()) {
    TrimSlice();
  } else {
    AnswerTrimWaiters();  // versions that a reader still pins are trimmed later
  }
  NotifyProgress();
}

bool Core::Commit() {
  const bool nothing = changes_.empty() && batch_.empty();
  if (nothing && !lessor.pending()) return true;
  if (backend && !nothing) {
    for (const Change& change : changes_) {
      const Version* version = Index::Exactly(change.entry->second, change.revision, change.sub);
      batch_.records.push_back({.revision = change.revision,
                                .sub = change.sub,
                                .create = version->create,
                                .version = version->version,
                                .lease = version->lease,
                                .value_size = version->value_size,
                                .key = change.entry->first,
                                .value = version->value.view()});
    }
    if (KS_FAILPOINT("kv/commit/before-write")) {
      Fail({.code = ErrorCode::kInternal, .message = "commit failed: failpoint kv/commit/before-write"});
      return false;
    }
    auto committed = backend->Commit(batch_);
    if (!committed.ok()) {
      Fail(std::move(committed).error());
      return false;
    }
    KS_FAILPOINT("kv/commit/before-publish");
  }
  Publish();
  return true;
}

void Core::Publish() {
  WatchHub::Wakes wakes;
  {
    std::lock_guard guard(lock);
    for (const Change& change : changes_) {
      KS_CHECK(change.revision > visible && change.revision <= assigned_);  // A revision is never used twice.
      index.Publish(change);
    }
    visible = assigned_;
    compact = compacting_;
    lessor.Publish();
    wakes = hub.Publish(changes_, visible);
    index.Evict();
  }
  for (auto& wake : wakes) wake(Wake::kLook);
  changes_.clear();
  batch_ = CommitBatch();
}

void Core::Rollback() {
  std::lock_guard guard(lock);
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) index.TakeBack(change->entry);
  lessor.Rollback();
  assigned_ = visible;
  compacting_ = compact;
  changes_.clear();
  batch_ = CommitBatch();
}

bool Core::HasToTrim() const {
  if (trimmed_ >= compact) return false;
  std::shared_lock guard(lock);
  return trimmed_ < TrimTarget();
}

Revision Core::HoldRevision() {
  std::lock_guard guard(lock);
  held.insert(visible);
  return visible;
}

void Core::ReleaseRevision(Revision revision) {
  {
    std::lock_guard guard(lock);
    held.erase(held.find(revision));
  }
  Tick();  // There may be more to drop.
}

void Core::TrimSlice() {
  std::vector<Location> dead;
  bool more = false;
  Revision target = 0;
  {
    std::lock_guard guard(lock);
    target = TrimTarget();
    more = index.Trim(target, kTrimSliceChanges, dead);
  }
  KS_FAILPOINT("kv/compact/before-forget");
  // Records that a failed store could not drop are found by recovery.
  if (backend && !dead.empty() && !failed_) {
    std::ranges::sort(dead, [](const Location& a, const Location& b) {
      return std::pair(a.revision, a.sub) < std::pair(b.revision, b.sub);
    });
    auto forgotten = backend->Forget(dead);
    if (!forgotten.ok()) Fail(std::move(forgotten).error());
  }
  KS_FAILPOINT("kv/compact/after-forget");
  if (!more) FinishTrim(target);
}

void Core::FinishTrim(Revision target) {
  trimmed_ = target;
  if (backend) backend->Compacted(target);
  AnswerTrimWaiters();
}

void Core::AnswerTrimWaiters() {
  for (auto& waiter : trim_waiters_) waiter(failed_ ? Result<Revision>(*failed_) : Result<Revision>(visible));
  trim_waiters_.clear();
}

// After a start the leases of a whole hour may be due at once: a commit takes a slice, the next one goes on.
void Core::ExpireLeases() {
  for (const LeaseID id : lessor.Due(Now(), kBatchTasksMax)) {
    if (changes_.size() >= kBatchTasksMax) break;
    KS_FAILPOINT("kv/lease/expire");
    IgnoreError(ApplyRevoke(id), "it was due, so it exists");
  }
}

void Core::NotifyProgress() {
  if (Now() < next_progress_) return;
  next_progress_ = Now() + options.progress_interval;
  WatchHub::Wakes wakes = hub.Progress();
  for (auto& wake : wakes) wake(Wake::kLook);
}

}  // namespace keelson::kv::mvcc
