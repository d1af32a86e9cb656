// The embedded store on disk: etcd's meaning (kv/mvcc) over RocksDB. One process at a time has a data folder.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kv/mvcc/store.h"

namespace rocksdb {
class Env;
}

namespace keelson::kv::rocks {

struct Options : mvcc::Options {
  std::string dir;                                                   // made if it is not there
  std::int64_t quota_bytes = std::int64_t{8} * 1024 * 1024 * 1024;   // writes are refused beyond it; 0: no quota
  std::int64_t disk_reserve_bytes = std::int64_t{64} * 1024 * 1024;  // of the file system, left free
  // Set aside in the file <dir>/reserve while there is space, and given up by and by when the disk is full, so that
  // deletions and compactions still find room: a log's zeros and a flush of every memtable. 0: none.
  std::int64_t deletion_reserve_bytes = std::int64_t{32} * 1024 * 1024;
  bool sync = true;  // false: acknowledged writes do not survive power loss
  std::size_t memtable_bytes = std::size_t{8} * 1024 * 1024;
  std::size_t block_cache_bytes = std::size_t{2} * 1024 * 1024;
  // While opening: how many records of about how many have been read. Called every kProgressEvery records.
  std::function<void(std::uint64_t done, std::uint64_t about)> progress;
  rocksdb::Env* env = nullptr;  // for tests that lose power; must outlive the store
};

constexpr std::uint64_t kProgressEvery = 100'000;

// kInUse: another process has it. kCorrupt: damaged, the message names the file or record. The store is usable at once.
Result<std::unique_ptr<mvcc::EmbeddedStore>> Open(Options options);

}  // namespace keelson::kv::rocks
