// RocksDB's log, written past the page cache into space that is already there.
//
//   file   |rrrrrrrrrrrrrrrrrrrrrrrrrrrrrr|rrr00000|00000000000000000000|
//          0            whole blocks      |  tail  |  zeros written     | allocated
//                                         ^ what the buffer holds again
//
// A log that only grows makes every sync a transaction of the file system, for its size and its new blocks, beside the
// write itself. Here zeros are written ahead, half a megabyte at once, so that a sync is one write of the
// last blocks and a flush of the disk. RocksDB's reader takes zeros for the end of the log; a clean end cuts them off.
// Thread safety: as rocksdb::FileSystem.
#pragma once

#include <rocksdb/file_system.h>

#include <memory>

namespace keelson::kv::rocks {

// `base` with such logs. If a file does not support direct I/O, its log is `base`'s own.
std::shared_ptr<rocksdb::FileSystem> NewLogFileSystem(std::shared_ptr<rocksdb::FileSystem> base);

}  // namespace keelson::kv::rocks
