// Recovery in place, on the writer thread. A write that failed leaves the end of the backend's log unknown, so nothing
// may be appended to it. The backend is opened again, which reads its log as a start does. Its records are then
// compared with the index, which has exactly the acknowledged changes: missing changes mean that the disk lost them,
// and the store stays as it is; surplus changes are those of the commit that failed or of a compaction that was not
// finished, and are dropped. So the store on disk is what readers saw all the time.
#include <algorithm>
#include <map>
#include <mutex>

#include "base/failpoint.h"
#include "kv/mvcc/core.h"
#include "telemetry/log.h"

namespace keelson::kv::mvcc {
namespace {

constexpr std::chrono::seconds kRecoverEvery{1};

bool Same(const Record& record, const Version& version) {
  return record.create == version.create && record.version == version.version && record.lease == version.lease &&
         record.value_size == version.value_size;
}

// Compares what is kept with what the store has.
class Reconciler final : public LoadSink {
 public:
  Reconciler(const Index& index, const Lessor& lessor, Revision compact) : index_(index), compact_(compact) {
    for (const auto& [id, ttl] : lessor.All()) leases_[id] = ttl;
  }
  void OnRecord(const Record& record) override {
    const Entry* entry = index_.Find(record.key);
    const Version* version = entry != nullptr ? Index::Exactly(entry->second, record.revision, record.sub) : nullptr;
    if (version != nullptr && Same(record, *version)) {
      ++found_;
    } else {
      dead.push_back({.revision = record.revision, .sub = record.sub, .size = record.value_size});
    }
  }
  void OnLease(const LeaseRecord& lease) override {
    const auto wanted = leases_.find(lease.id);
    if (wanted == leases_.end()) {
      repair.leases_removed.push_back(lease.id);
    } else if (wanted->second == lease.ttl) {
      leases_.erase(wanted);
    }
  }
  void OnCompact(Revision revision) override { compact_found_ = revision; }

  // Call after all records. kCorrupt if an acknowledged one is missing.
  Result<void> Finish() {
    std::size_t versions = 0;
    for (const auto& [key, all] : index_.keys()) versions += all.size();
    if (found_ != versions) {
      return Error{.code = ErrorCode::kCorrupt,
                   .message = "store damaged: of " + std::to_string(versions) + " acknowledged changes " +
                              std::to_string(versions - found_) + " are not on the disk"};
    }
    for (const auto& [id, ttl] : leases_) repair.leases.push_back({.id = id, .ttl = ttl});
    if (compact_found_ != compact_) repair.compact = std::max<Revision>(compact_, 0);
    return {};
  }

  CommitBatch repair;
  std::vector<Location> dead;

 private:
  const Index& index_;
  const Revision compact_;
  std::map<LeaseID, std::int64_t> leases_;
  std::size_t found_ = 0;
  Revision compact_found_ = -1;
};

}  // namespace

void Core::Fail(Error error) {
  if (failed_) return;
  log::Error("Store refuses writes until it has recovered: a write failed, so the end of its log is unknown", "err",
             error.message);
  recover_at_ = Now() + kRecoverEvery;
  recover_error_.clear();
  failed_ = std::move(error);
  ++write_failures_;
  refuses_writes_ = true;
}

Result<void> Core::TryRecover() {
  if (KS_FAILPOINT("kv/recover/reopen"))
    return Error{.code = ErrorCode::kInternal, .message = "failpoint kv/recover/reopen"};
  KS_RETURN_IF_ERROR(backend->Reopen());
  Reconciler reconciler(index, lessor, compact);
  KS_RETURN_IF_ERROR(backend->Load(reconciler));
  KS_RETURN_IF_ERROR(reconciler.Finish());
  return backend->Repair(reconciler.repair, reconciler.dead, visible);
}

void Core::Recover() {
  auto recovered = TryRecover();
  if (recovered.ok()) {
    {
      // As after a start. Renewals were refused while the store could not write.
      std::lock_guard guard(lock);
      lessor.RenewAll(Now());
    }
    log::Info("Store recovered and takes writes again", "revision", visible);
    failed_.reset();
    refuses_writes_ = false;
    return;
  }
  Error error = std::move(recovered).error();
  // Lost records do not come back by a retry.
  recover_at_ = Now() + kRecoverEvery;
  if (error.code == ErrorCode::kCorrupt) recover_at_.reset();
  if (error.message == recover_error_) return;
  log::Error(recover_at_ ? "Could not recover the store yet" : "Could not recover the store: it has to be restored",
             "err", error.message);
  recover_error_ = std::move(error.message);
}

}  // namespace keelson::kv::mvcc
