// Room for RocksDB's compactions. Without it a compaction that does not fit takes the disk's last byte, fails, removes
// what it wrote and begins again a second later, for as long as the disk is full; commits and flushes find no room
// meanwhile. Here a compaction begins only where its whole result fits and leaves room for them. RocksDB tries the
// others again once a second, which costs a look at the folder.
#pragma once

#include <rocksdb/file_system.h>
#include <rocksdb/listener.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace keelson::kv::rocks {

// For DBOptions::listeners. RocksDB cannot be refused a compaction when it begins, so the table that the compaction
// creates is refused, by the file system. `free_bytes` is called by RocksDB's threads, and as long as the database
// lives. `spare_bytes` are left for others.
std::shared_ptr<rocksdb::EventListener> NewCompactionRoom(std::function<std::int64_t()> free_bytes,
                                                          std::int64_t spare_bytes);
// `base`, without tables of compactions that have no room. For the environment of a database with such a listener.
std::shared_ptr<rocksdb::FileSystem> NewRoomFileSystem(std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace keelson::kv::rocks
