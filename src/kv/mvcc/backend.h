// Persistence of the store's changes. MVCC semantics are in the store; a backend handles records only.
// Thread safety: Pin, its View and GetSpace from any thread; all others by the writer thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kv/kv.h"

namespace keelson::kv::mvcc {

// One change as it is kept. `create` 0 means a deletion.
struct Record {
  Revision revision = 0;
  std::uint32_t sub = 0;  // its place among the changes of one revision
  Revision create = 0;
  std::int64_t version = 0;
  LeaseID lease = 0;
  std::uint32_t value_size = 0;
  std::string_view key;
  std::string_view value;  // when committing; not given when loading
};

struct LeaseRecord {
  LeaseID id = 0;
  std::int64_t ttl = 0;  // seconds
};

// Everything one commit makes durable, all or nothing.
struct CommitBatch {
  std::vector<Record> records;
  std::vector<LeaseRecord> leases;
  std::vector<LeaseID> leases_removed;
  std::optional<Revision> compact;
  bool empty() const { return records.empty() && leases.empty() && leases_removed.empty() && !compact; }
};

// Location of a value.
struct Location {
  Revision revision = 0;
  std::uint32_t sub = 0;
  std::uint32_t size = 0;
};

struct Space {
  std::int64_t total = 0;   // bytes on disk
  std::int64_t in_use = 0;  // of them needed
};

// Takes what is kept, in the order of revisions.
class LoadSink {
 public:
  virtual ~LoadSink() = default;
  virtual void OnRecord(const Record& record) = 0;
  virtual void OnLease(const LeaseRecord& lease) = 0;
  virtual void OnCompact(Revision revision) = 0;
};

class Backend {
 public:
  // The values as they were when it was made, whatever is forgotten meanwhile.
  class View {
   public:
    virtual ~View() = default;
    virtual Result<std::vector<SharedBytes>> Read(std::span<const Location> locations) = 0;
  };

  virtual ~Backend() = default;
  virtual Result<void> Load(LoadSink& sink) = 0;
  // Durable when it returns. After an error nothing may be committed before Reopen() and Repair(): what was kept is not
  // known.
  virtual Result<void> Commit(const CommitBatch& batch) = 0;
  // Drops records that no reader can reach any more, in the order of revisions. Needs not be durable: it is done again
  // after Load.
  virtual Result<void> Forget(std::span<const Location> dead) = 0;
  // Everything up to `revision` was forgotten that can be; a chance to give space back.
  virtual void Compacted(Revision revision) = 0;
  virtual Result<SharedBytes> Read(const Location& location) = 0;
  virtual std::unique_ptr<View> Pin() = 0;
  // kNoSpace when `bytes` more would pass the quota or fill the disk.
  virtual Result<void> CheckSpace(std::int64_t bytes) = 0;
  virtual Space GetSpace() = 0;

  // After a failed Commit or Forget: reopens the files, so that Load() returns what was kept. May be tried again after
  // an error; readers get kUnavailable meanwhile.
  virtual Result<void> Reopen() = 0;
  // After Reopen() and Load(): drops `dead`, which may be younger than `last`, and keeps `batch`, which has no records.
  // `last` is the last revision then. Durable when it returns.
  virtual Result<void> Repair(const CommitBatch& batch, std::span<const Location> dead, Revision last) = 0;
};

}  // namespace keelson::kv::mvcc
