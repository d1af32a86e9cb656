#include "kv/rocks/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "base/failpoint.h"
#include "kv/rocks/backend.h"
#include "kv/snapshot/snapshot.h"

namespace keelson::kv::rocks {
namespace {

constexpr std::size_t kReadBatch = 1024;
constexpr std::size_t kRestoreBatchBytes = std::size_t{4} * 1024 * 1024;

Error Damaged(std::string what) {
  return {.code = ErrorCode::kCorrupt, .message = "store damaged: " + std::move(what)};
}

// Checks each change against those before it, and remembers which values to read.
class Checker final : public mvcc::LoadSink {
 public:
  void OnRecord(const mvcc::Record& record) override {
    ++report.changes;
    if (record.revision < report.revision || (record.revision == report.revision && record.sub <= sub_)) {
      Fail(fmt::format("change {}.{} is out of order", record.revision, record.sub));
    }
    report.revision = record.revision;
    sub_ = record.sub;
    Latest& latest = keys_[std::string(record.key)];
    // Changes older than the compaction may have lost their predecessors.
    if (latest.known && record.create != 0 && record.create != record.revision && latest.create != record.create) {
      Fail(fmt::format("change {}.{} of a key does not continue the change before it", record.revision, record.sub));
    }
    if (record.create == record.revision && record.version != 1)
      Fail(fmt::format("change {}.{} creates a key with version {}", record.revision, record.sub, record.version));
    latest = {.known = true, .create = record.create, .lease = record.lease};
    if (record.value_size > 0)
      locations.push_back({.revision = record.revision, .sub = record.sub, .size = record.value_size});
    report.value_bytes += record.value_size;
  }
  void OnLease(const mvcc::LeaseRecord&) override { ++report.leases; }
  void OnCompact(Revision revision) override { report.compact_revision = revision; }

  Result<void> Finish() {
    report.revision = std::max(report.revision, report.compact_revision);
    for (const auto& [key, latest] : keys_) report.keys += latest.create != 0 ? 1 : 0;
    if (!failure_.empty()) return Damaged(failure_);
    return {};
  }

  CheckReport report;
  std::vector<mvcc::Location> locations;

 private:
  struct Latest {
    bool known = false;
    Revision create = 0;
    LeaseID lease = 0;
  };
  void Fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }
  std::map<std::string, Latest> keys_;
  std::uint32_t sub_ = 0;
  std::string failure_;
};

// Keys come by key and are kept by revision: all their metadata is held, values are written as they come.
class Restorer final : public snapshot::Visitor {
 public:
  Restorer(RocksBackend& backend, const Progress& progress, std::int64_t total)
      : backend_(backend), progress_(progress), total_(static_cast<std::uint64_t>(total)) {}
  Result<void> OnLease(LeaseID id, std::int64_t ttl) override {
    leases_.insert(id);
    mvcc::CommitBatch batch;
    batch.leases.push_back({.id = id, .ttl = ttl});
    return backend_.Commit(batch);
  }
  Result<void> OnKey(KeyValue kv) override {
    if (kv.key.empty() || kv.mod_revision <= 0 || kv.create_revision <= 0 || kv.version <= 0)
      return Damaged("the snapshot has a key without revisions");
    // Snapshots of earlier versions left out leases that were ending; their keys would never end.
    if (kv.lease != 0 && !leases_.contains(kv.lease)) KS_RETURN_IF_ERROR(OnLease(kv.lease, snapshot::kEndedLeaseTTL));
    bytes_ += kv.key.size() + kv.value.size();
    kvs_.push_back(std::move(kv));
    if (++done_ % kReadBatch == 0 && progress_) progress_(done_, total_);
    return bytes_ < kRestoreBatchBytes ? Result<void>() : Flush();
  }
  Result<void> Flush() {
    mvcc::CommitBatch batch;
    for (const KeyValue& kv : kvs_) {
      batch.records.push_back({.revision = kv.mod_revision,
                               .sub = subs_[kv.mod_revision]++,  // its place among the keys of one transaction
                               .create = kv.create_revision,
                               .version = kv.version,
                               .lease = kv.lease,
                               .value_size = static_cast<std::uint32_t>(kv.value.size()),
                               .key = kv.key,
                               .value = kv.value.view()});
    }
    if (KS_FAILPOINT("kv/restore/batch"))
      return Error{.code = ErrorCode::kInternal, .message = "failpoint kv/restore/batch"};
    auto committed = backend_.Commit(batch);
    kvs_.clear();
    bytes_ = 0;
    return committed;
  }
  Result<void> Finish(Revision revision) {
    KS_RETURN_IF_ERROR(Flush());
    mvcc::CommitBatch batch;
    batch.compact = revision;
    return backend_.Commit(batch);
  }

 private:
  RocksBackend& backend_;
  const Progress& progress_;
  const std::uint64_t total_;
  std::uint64_t done_ = 0;
  std::set<LeaseID> leases_;
  std::vector<KeyValue> kvs_;
  std::map<Revision, std::uint32_t> subs_;
  std::size_t bytes_ = 0;
};

Result<std::unique_ptr<RocksBackend>> OpenExisting(const std::string& dir, Access access) {
  if (!std::filesystem::exists(dir + "/db"))
    return Error{.code = ErrorCode::kInvalidArgument, .message = "there is no store in " + dir};
  Options options;
  options.dir = dir;
  return RocksBackend::Open(std::move(options), access);
}

Error AlreadyThere(const std::string& dir) {
  return {.code = ErrorCode::kInvalidArgument, .message = "there is already a store in " + dir};
}

Result<void> RestoreInto(const std::string& snapshot_path, const std::string& dir, const Progress& progress,
                         std::int64_t total) {
  Options options;
  options.dir = dir;
  options.deletion_reserve_bytes = 0;
  KS_TRY(auto backend, RocksBackend::Open(std::move(options)));
  Restorer restorer(*backend, progress, total);
  KS_TRY(const snapshot::Info info, snapshot::ReadFile(snapshot_path, &restorer));
  return restorer.Finish(info.revision);
}

}  // namespace

Result<CheckReport> Check(const std::string& dir, const Progress& progress) {
  KS_TRY(auto backend, OpenExisting(dir, Access::kRead));
  const auto files = backend->database()->db->VerifyChecksum();
  if (!files.ok()) return FromStatus(files, "checking the files of " + dir);
  Checker checker;
  KS_RETURN_IF_ERROR(backend->Load(checker));
  KS_RETURN_IF_ERROR(checker.Finish());
  const auto view = backend->Pin();
  const std::span<const mvcc::Location> all = checker.locations;
  for (std::size_t at = 0; at < all.size(); at += kReadBatch) {
    KS_RETURN_IF_ERROR(view->Read(all.subspan(at, std::min(kReadBatch, all.size() - at))));
    if (progress) progress(std::min(at + kReadBatch, all.size()), all.size());
  }
  return checker.report;
}

Result<CheckReport> Restore(const std::string& snapshot_path, const std::string& dir, const Progress& progress) {
  if (std::filesystem::exists(dir + "/db")) return AlreadyThere(dir);
  KS_TRY(const snapshot::Info info, snapshot::ReadFile(snapshot_path, nullptr));
  {
    KS_TRY(auto folder, Folder::Take(dir));
    if (std::filesystem::exists(folder->db_path())) return AlreadyThere(dir);
    std::error_code error;
    std::filesystem::remove_all(folder->restoring_path(), error);
    if (error) {
      return Error{.code = ErrorCode::kInternal,
                   .message = "cannot remove " + folder->restoring_path() + ": " + error.message()};
    }
    KS_RETURN_IF_ERROR(RestoreInto(snapshot_path, folder->restoring_path(), progress, info.keys));
    KS_RETURN_IF_ERROR(folder->FinishRestore());
  }
  return Check(dir);
}

Result<void> Defragment(mvcc::EmbeddedStore& store) {
  auto* backend = dynamic_cast<RocksBackend*>(store.backend());
  if (backend == nullptr) return {};
  return backend->Defragment();
}

Result<void> DefragmentDir(const std::string& dir) {
  KS_TRY(auto backend, OpenExisting(dir, Access::kWrite));
  return backend->Defragment();
}

}  // namespace keelson::kv::rocks
