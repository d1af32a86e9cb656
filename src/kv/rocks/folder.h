// The data folder: who has it, and what of it is known to be durable.
//
//   <dir>/lock      held while a process has the store; its text is that process's id
//   <dir>/durable   a revision that was acknowledged; written now and then, so that a log that ends earlier is known to
//   be damaged <dir>/db/       RocksDB
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "kv/kv.h"

namespace keelson::kv::rocks {

// Thread safety: one thread.
class Folder {
 public:
  // Makes the folder when it is missing, and takes it. kInUse when another process has it.
  static Result<std::unique_ptr<Folder>> Take(const std::string& dir);
  ~Folder();

  std::string db_path() const { return dir_ + "/db"; }
  const std::string& dir() const { return dir_; }
  std::int64_t FreeBytes() const;  // of the file system, for us
  std::int64_t UsedBytes() const;  // of all files in db/

  std::optional<Revision> ReadDurable() const;
  void WriteDurable(Revision revision, bool sync);
  void RemoveDurable();

 private:
  Folder(std::string dir, int lock) : dir_(std::move(dir)), lock_(lock) {}
  const std::string dir_;
  const int lock_;
  int durable_ = -1;
};

}  // namespace keelson::kv::rocks
