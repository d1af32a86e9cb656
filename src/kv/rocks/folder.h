// The data folder: its lock, and its marker of durable revisions.
//
//   <dir>/lock      held while a process has the store; its text is that process's id
//   <dir>/durable   a revision that was acknowledged; written now and then, so that a log that ends earlier is known to
//                   be damaged
//   <dir>/reserve   space for deletions on a full disk (rocks.h)
//   <dir>/db/       RocksDB
//   <dir>/db.restoring/   a restore in progress, or one that was interrupted; never opened as a store
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kv/kv.h"

namespace keelson::kv::rocks {

// Writes the bytes of a file over themselves, so that the next sync makes all of them durable.
Result<void> RewriteFile(const std::string& path);

// Of the file system that has `dir`, for us. From any thread.
std::int64_t FreeBytesAt(const std::string& dir);

// Thread safety: one thread.
class Folder {
 public:
  // Makes the folder when it is missing, and takes it. kInUse when another process has it.
  static Result<std::unique_ptr<Folder>> Take(const std::string& dir);
  // The same for readers: nothing is created or written.
  static Result<std::unique_ptr<Folder>> TakeToRead(const std::string& dir);
  ~Folder();

  std::string db_path() const { return dir_ + "/db"; }
  std::string restoring_path() const { return dir_ + "/db.restoring"; }
  const std::string& dir() const { return dir_; }
  std::int64_t FreeBytes() const { return FreeBytesAt(dir_); }
  std::int64_t UsedBytes() const;  // of all files in db/

  std::optional<Revision> ReadDurable() const;
  void WriteDurable(Revision revision, bool sync);
  void RemoveDurable();
  // Makes the entries of this folder durable, so that what is in db/ can be found after a loss of power.
  Result<void> Sync() const;
  // Writes a file, syncs and removes it: whether the disk takes anything.
  Result<void> ProbeWrite() const;

  // Sets `bytes` aside, if the file system can do so without writing them.
  void FillReserve(std::int64_t bytes);
  // Gives up to `bytes` of the reserve back to the file system.
  void ReleaseReserve(std::int64_t bytes);
  std::int64_t reserve_bytes() const { return reserve_bytes_; }

  // Makes the database of restoring_path() that of this folder. Durable when it returns.
  Result<void> FinishRestore();

 private:
  Folder(std::string dir, int lock) : dir_(std::move(dir)), lock_(lock) {}
  void OpenReserve();
  const std::string dir_;
  const int lock_;
  int durable_ = -1;
  int reserve_ = -1;
  std::int64_t reserve_bytes_ = 0;
};

}  // namespace keelson::kv::rocks
