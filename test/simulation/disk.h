// A disk that loses power. Below one folder the system calls of this whole process go through it (open, write, fsync,
// rename, unlink, statvfs and so on are defined in disk.cc), so RocksDB, the store's log and its folder run unchanged.
// The files lie in a real folder, best on a file system in memory; the disk tracks what of them would survive:
//
//   page of a file   durable once a sync of the file, or a write with RWF_DSYNC of that page, has returned
//   directory entry  durable once the directory was synced; before that a power loss keeps a prefix of what was done
//
// After a failed sync the pages count as clean: a later sync succeeds and makes nothing durable (Linux).
// Thread safety: system calls from any thread; the members by the simulation's thread while no call is under way.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/random.h"

namespace keelson::simulation {

class Disk {
 public:
  enum class Loss : std::uint8_t { kNothing, kUnsynced };  // a process was killed; the power failed

  // One at a time. `root` exists and is empty.
  explicit Disk(std::string root);
  ~Disk();

  // Nothing reaches the disk any more: every call that changes something fails with EIO.
  void Freeze();
  bool frozen() const;
  // The same, by itself, after so many changing calls of the thread that called ObeyFreeze().
  void FreezeAfter(int calls);
  // The next start finds what is left. REQUIRES: frozen, and no file is open.
  void Thaw(Loss loss, base::Random& random);

  // Bytes that can still be written; negative: no limit.
  void SetFree(std::int64_t bytes);
  void FailSyncs(int count);  // the next ones of logs, with EIO
  void Lie();                 // until the power fails, syncs succeed and make nothing durable

  // While it is set, calls of this thread that have reached the disk and are not durable yet wait, for `.log` files,
  // and so do its sleeps. Null: none does.
  using WaitFunction = std::function<void(std::chrono::nanoseconds least)>;
  static void Waits(const WaitFunction* wait);
  static void ObeyFreeze();  // this thread's calls count for FreezeAfter()

  struct Figures {
    std::uint64_t writes, syncs, torn_pages, lost_pages, lost_entries, failed_syncs, refused_writes;
  };
  Figures figures() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::simulation
