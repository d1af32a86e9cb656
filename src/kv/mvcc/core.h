// The store's state and its writer thread. Internal to mvcc; see store.h for the picture.
// Locking: `lock` guards index, lessor, visible and compact. The writer thread alone changes them, so it reads them
// without the lock and takes it exclusively to change them; all other threads read them under the shared lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "async/blocking_pool.h"
#include "async/suspend.h"
#include "kv/kv.h"
#include "kv/mvcc/backend.h"
#include "kv/mvcc/index.h"
#include "kv/mvcc/lessor.h"
#include "kv/mvcc/rwlock.h"
#include "kv/mvcc/store.h"
#include "kv/mvcc/watch_hub.h"

namespace keelson::kv::mvcc {

// One piece of work for the writer thread.
class Task {
 public:
  explicit Task(std::size_t bytes) : bytes(bytes) {}
  virtual ~Task() = default;
  virtual void Apply() = 0;                         // before the commit
  virtual void Complete(const Error* failure) = 0;  // after it; `failure` when it could not be made
  const std::size_t bytes;
};

// Values that have to be read from the backend, and where they go.
struct Missing {
  std::vector<Location> locations;
  std::vector<SharedBytes*> targets;
  std::unique_ptr<Backend::View> view;

  bool empty() const { return locations.empty(); }
  void Add(const Version& version, SharedBytes* target) {
    locations.push_back(version.location());
    targets.push_back(target);
  }
  Result<void> Fill();
};

class Core final : public LoadSink {
 public:
  Core(std::unique_ptr<Backend> backend, Options options);
  ~Core() override;

  Result<void> Start();
  void Stop();
  void Tick();
  WriteHealth write_health() const { return {.refuses_writes = refuses_writes_, .failures = write_failures_}; }

  template <class T, class F>
  void Submit(std::size_t bytes, F apply, async::Callback<Result<T>> done);
  template <class T, class F>
  Awaitable<Result<T>> Submit(std::size_t bytes, F apply);

  // Keeps the state of the last published revision readable, whatever is compacted, until ReleaseRevision().
  Revision HoldRevision();
  void ReleaseRevision(Revision revision);

  // Reads, on any thread (store.cc).
  Awaitable<Result<RangeResponse>> Range(RangeRequest request);
  Result<Revision> ResolveRevision(Revision asked, Revision current, Revision compact) const;
  // The keys of the range at `at`, with values as far as they are resident. REQUIRES: the lock, or being the writer.
  void Gather(const RangeRequest& request, Revision at, RangeResponse& response, Missing& missing) const;
  static void FinishRange(const RangeRequest& request, RangeResponse& response);
  Result<void> FillOnWriter(Missing& missing);
  Awaitable<Result<void>> FillOnPool(Missing& missing);  // `missing` must live until it returns

  // Changes, on the writer thread (txn_apply.cc).
  Result<TxnResponse> ApplyTxn(const TxnRequest& request);
  Result<Lease> ApplyGrant(std::int64_t ttl, LeaseID id);
  Result<Revision> ApplyRevoke(LeaseID id);
  Result<Revision> ApplyCompact(Revision revision);

  void OnRecord(const Record& record) override;
  void OnLease(const LeaseRecord& lease) override;
  void OnCompact(Revision revision) override;

  const Options options;
  const std::unique_ptr<Backend> backend;
  std::unique_ptr<async::BlockingPool> pool;  // for reads from the backend

  mutable RWLock lock;
  Index index;
  Lessor lessor;
  Revision visible = 1;          // an empty store is at revision 1, as etcd's
  Revision compact = -1;         // reads before it are refused, but at revisions that are held
  std::multiset<Revision> held;  // changed by any thread, under the exclusive lock
  WatchHub hub;

 private:
  friend class CompactTask;
  struct PathStep;

  void Enqueue(std::unique_ptr<Task> task);
  void Run();
  // One turn of the writer: commits expired leases and the queued transactions as one batch, then trims a slice of the
  // compacted versions and notifies progress. REQUIRES: the queue's mutex in `guard`, which is released.
  void Step(std::unique_lock<std::mutex> guard);
  void Wake();  // wakes the writer
  // With options.executor: has one step run. REQUIRES: the queue's mutex.
  void ScheduleStep();
  bool Commit();
  void Publish();
  void Fail(Error error);
  void Rollback();
  // After a failure (recovery.cc): opens the backend again, makes sure that it has everything that was acknowledged,
  // and drops what was not.
  void Recover();
  Result<void> TryRecover();
  // How far old versions may be dropped. REQUIRES: the lock.
  Revision TrimTarget() const { return held.empty() ? compact : std::min(compact, *held.begin()); }
  bool HasToTrim() const;
  void TrimSlice();
  void FinishTrim(Revision target);
  void AnswerTrimWaiters();
  void ExpireLeases();
  void NotifyProgress();
  base::Clock::SteadyTime Now() const { return options.clock->Monotonic(); }

  Result<bool> Holds(const kv::Compare& compare);
  Result<void> CheckPath(const TxnRequest& request, bool success, std::vector<bool>::const_iterator& step);
  Result<void> EvaluatePath(const TxnRequest& request, std::vector<bool>& path);
  Result<TxnResponse> Execute(const TxnRequest& request, std::vector<bool>::const_iterator& step);
  Result<void> ApplyPut(const PutRequest& request, OpResponse& response);
  Result<void> ApplyDelete(const DeleteRangeRequest& request, OpResponse& response);
  Result<SharedBytes> ValueOf(const Version& version);
  // Reads the value of a version about to be superseded, so that watches with prev_kv find it in memory. One that
  // cannot be read stays on the disk and fails the watches that need it, never the change.
  void KeepForWatchers(const Version& version);
  void AddVersion(const std::string& key, const Version* previous, Version version);
  Revision HeaderRevision() const { return assigned_ + (sub_ > 0 ? 1 : 0); }

  // Of the writer thread only.
  Revision assigned_ = 1;        // the last revision given to a transaction, committed or not
  std::uint32_t sub_ = 0;        // changes of the transaction that is being applied
  Revision compacting_ = -1;     // compact, as of the transactions applied but not committed
  std::vector<Change> changes_;  // applied, not committed
  CommitBatch batch_;
  std::optional<Error> failed_;                        // no commit is possible until it is recovered
  std::optional<base::Clock::SteadyTime> recover_at_;  // when failed_; nothing: never
  std::string recover_error_;                          // what was logged last
  Revision trimmed_ = -1;
  std::vector<async::Callback<Result<Revision>>> trim_waiters_;
  base::Clock::SteadyTime next_progress_;

  std::atomic<bool> refuses_writes_{false};  // failed_, for others
  std::atomic<std::uint64_t> write_failures_{0};

  std::mutex queue_mutex_;
  std::condition_variable queue_ready_;
  std::deque<std::unique_ptr<Task>> queue_;
  bool stopping_ = false;
  bool tick_ = false;
  bool scheduled_ = false;                    // a step, on options.executor
  std::vector<std::unique_ptr<Task>> tasks_;  // of the step that runs
  std::thread writer_;
};

template <class T, class F>
class TaskOf final : public Task {
 public:
  TaskOf(std::size_t bytes, F apply, async::Callback<Result<T>> done)
      : Task(bytes), apply_(std::move(apply)), done_(std::move(done)) {}
  void Apply() override { result_.emplace(apply_()); }
  void Complete(const Error* failure) override {
    if (failure != nullptr) {
      done_(*failure);
    } else {
      done_(*std::move(result_));
    }
  }

 private:
  F apply_;
  async::Callback<Result<T>> done_;
  std::optional<Result<T>> result_;
};

template <class T, class F>
void Core::Submit(std::size_t bytes, F apply, async::Callback<Result<T>> done) {
  Enqueue(std::make_unique<TaskOf<T, F>>(bytes, std::move(apply), std::move(done)));
}

template <class T, class F>
Awaitable<Result<T>> Core::Submit(std::size_t bytes, F apply) {
  return async::Suspend<Result<T>>([this, bytes, apply = std::move(apply)](async::Callback<Result<T>> done) mutable {
    Submit<T>(bytes, std::move(apply), std::move(done));
  });
}

}  // namespace keelson::kv::mvcc
