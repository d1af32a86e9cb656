// Moves a store's contents to another store through the contract alone, while the source is in use: embedded to etcd,
// etcd to embedded, or between two of a kind.
//
//   Start()    an empty target gets every key; a target that is already a copy is compared with the source and goes on
//   Follow()   each revision of the source becomes one transaction of the target, until Stop()
//   Finish()   catches up with the source as it is then
//
// Revisions are kept where that is possible: a target younger than the source's oldest key is moved forward by writes
// of a scratch key, and each key is written exactly when the target is at its revision. A resourceVersion that a client
// holds then stays valid. A target that is too far for that gets every key at a new revision
// beyond all of the source's: resourceVersions never go backwards, and clients list again.
//
// Thread safety: one coroutine at a time, all on one thread's executor, where it also has to be destroyed; Stop() from
// any thread. Ownership: both stores must outlive this.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kv/kv.h"

namespace keelson::kv::migrate {

struct Options {
  std::int64_t scratch_writes_max = 20'000'000;  // to move the target's revision forward; one write a revision
  std::size_t scratch_clients = 128;             // such writes under way at once
  std::size_t txn_ops_max = 128;                 // of the target; etcd's default
  std::int64_t lease_ttl_min = 600;              // seconds: a lease must not end in the target before its owner moves
  std::function<void(const std::string&)> progress = [](const std::string&) {};  // one line of text
  std::function<void(std::size_t keys, std::size_t total)> copied = [](std::size_t, std::size_t) {};  // now and then
};

struct Report {
  std::int64_t keys = 0;     // copied at the start
  std::int64_t leases = 0;   // made in the target
  std::int64_t changes = 0;  // revisions followed
  Revision from_revision = 0;
  Revision to_revision = 0;
  bool same_revisions = true;
};

class Migration {
 public:
  Migration(Store& from, Store& to, Options options);
  ~Migration();

  // kInvalidArgument when the target holds something else, or is too far behind.
  Awaitable<Result<void>> Start();
  Awaitable<Result<void>> Follow();  // until Stop(); an error when the source's history or the target is lost
  void Stop();
  Awaitable<Result<Report>> Finish();
  const Report& report() const { return report_; }

 private:
  using Revisions = std::vector<std::pair<Revision, std::string>>;  // the keys of the source by their mod revision

  Awaitable<Result<void>> Compare(Revision at);
  Awaitable<Result<Revisions>> ListKeys(Revision at);
  Awaitable<Result<void>> CopyAtOwnRevisions(const Revisions& keys);
  Awaitable<Result<void>> CopyBeyond(const Revisions& keys);
  Awaitable<Result<std::vector<Op>>> ReadKeys(const Revisions& keys, std::size_t begin, std::size_t end);
  Awaitable<Result<void>> MoveTo(Revision revision);
  Awaitable<Result<void>> CatchUp(Revision until);
  Awaitable<Result<void>> Apply(const std::vector<Event>& events);
  Awaitable<Result<std::vector<Op>>> ApplyOps(const std::vector<Event>& events);
  Awaitable<Result<void>> Write(std::vector<Op> ops);
  Awaitable<Result<LeaseID>> EnsureLease(LeaseID id);
  Awaitable<Result<void>> DropUnusedLeases();

  struct KeepAlive;

  Store& from_;
  Store& to_;
  const Options options_;
  Report report_;
  Revision applied_ = 0;  // of the source
  Revision at_ = 0;       // of the target
  bool scratch_ = false;  // the scratch key is in the target
  std::shared_ptr<KeepAlive> keep_alive_;
  std::mutex mutex_;  // of the watch, for Stop()
  Watcher* watch_ = nullptr;
  bool stopped_ = false;
};

}  // namespace keelson::kv::migrate
