// Care of an embedded store: what `keelson` offers as subcommands. All block: not on an I/O thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kv/kv.h"
#include "kv/mvcc/store.h"

namespace keelson::kv::rocks {

struct CheckReport {
  Revision revision = 0;
  Revision compact_revision = 0;
  std::int64_t keys = 0;     // that exist now
  std::int64_t changes = 0;  // of history, those included
  std::int64_t leases = 0;
  std::int64_t value_bytes = 0;
};

// How much of the work is done, now and then.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Reads everything in `dir` with its checksums: every file, every change, every value. Nothing is written.
// kCorrupt names what is damaged; kInUse when a process has the store.
Result<CheckReport> Check(const std::string& dir, const Progress& progress = nullptr);

// Makes a new store in `dir` (which must not hold one) from a snapshot file. Every key keeps its value, its revisions
// and its lease; the store goes on at the snapshot's revision, and everything before is compacted. `dir` has no store
// before the restore is complete: after a restore that failed or was killed the folder is refused until it is repeated.
Result<CheckReport> Restore(const std::string& snapshot_path, const std::string& dir,
                            const Progress& progress = nullptr);

// Rewrites a store's files without what was compacted, so that its space goes back to the file system.
Result<void> Defragment(mvcc::EmbeddedStore& store);  // an open one; nothing to do for one in memory
Result<void> DefragmentDir(const std::string& dir);

}  // namespace keelson::kv::rocks
