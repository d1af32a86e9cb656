// The records of a store in RocksDB (format.h). Internal to kv/rocks.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include "kv/mvcc/backend.h"
#include "kv/rocks/folder.h"
#include "kv/rocks/rocks.h"

namespace keelson::kv::rocks {

Error FromStatus(const rocksdb::Status& status, const std::string& what);

struct ColumnFamilies {
  rocksdb::ColumnFamilyHandle* settings = nullptr;
  rocksdb::ColumnFamilyHandle* changes = nullptr;
  rocksdb::ColumnFamilyHandle* values = nullptr;
};

// An open database. Views of it keep it; the backend lets go of it to open it again.
struct Database {
  ~Database();
  std::unique_ptr<rocksdb::Env> env;  // outlives the database
  std::unique_ptr<rocksdb::DB> db;
  ColumnFamilies families;
};
using DatabasePtr = std::shared_ptr<Database>;

enum class Access : std::uint8_t { kWrite, kRead };  // kRead: an existing store, of which nothing is changed

class RocksBackend final : public mvcc::Backend {
 public:
  static Result<std::unique_ptr<RocksBackend>> Open(Options options, Access access = Access::kWrite);
  ~RocksBackend() override;

  Result<void> Load(mvcc::LoadSink& sink) override;
  Result<void> Commit(const mvcc::CommitBatch& batch) override;
  Result<void> Forget(std::span<const mvcc::Location> dead) override;
  void Compacted(Revision revision) override;
  Result<SharedBytes> Read(const mvcc::Location& location) override;
  std::unique_ptr<View> Pin() override;
  Result<void> CheckSpace(std::int64_t bytes) override;
  mvcc::Space GetSpace() override;
  Result<void> Reopen() override;
  Result<void> Repair(const mvcc::CommitBatch& batch, std::span<const mvcc::Location> dead, Revision last) override;

  // Null while it is closed: after a Reopen() that failed.
  DatabasePtr database() const {
    std::lock_guard guard(database_mutex_);
    return database_;
  }
  Folder& folder() { return *folder_; }
  Result<void> Defragment();

 private:
  RocksBackend(Options options, Access access, std::unique_ptr<Folder> folder)
      : options_(std::move(options)), access_(access), folder_(std::move(folder)) {}
  Result<void> OpenDB();
  Result<void> CheckFormat(Database& database) const;
  Result<void> CheckSpaceToOpen();
  Result<void> CheckSpaceToRewrite() const;
  Result<void> Close();
  void FlushBeforeClose();
  void StopReclaim();
  void MeasureSpace();
  // Gives reserved space back when the disk has no room for a commit of `bytes`.
  void MakeRoom(std::int64_t bytes);
  void MarkDurable(Revision revision);

  const Options options_;
  const Access access_;
  std::unique_ptr<Folder> folder_;
  mutable std::mutex database_mutex_;
  DatabasePtr database_;  // guarded by database_mutex_; changed by the writer thread only
  std::string encoded_;   // reused

  Revision last_ = 0;    // the last committed revision
  bool loaded_ = false;  // found whole
  bool reopening_ = false;
  std::chrono::steady_clock::time_point marked_at_;

  std::int64_t used_ = 0;           // measured
  std::int64_t free_ = 0;           // measured
  std::int64_t written_since_ = 0;  // since it was measured
  std::chrono::steady_clock::time_point measured_at_;

  std::int64_t dead_bytes_ = 0;  // forgotten, not given back yet
  std::thread reclaim_;
  std::atomic<bool> reclaiming_{false};
};

}  // namespace keelson::kv::rocks
