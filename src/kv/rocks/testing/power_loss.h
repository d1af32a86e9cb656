// A file system that tracks which bytes were synced and which are only in memory, for tests that lose power. Syncing a
// file notes its length. The notes are in a shared table that survives the process.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
namespace rocksdb {
class FileSystem;
}
namespace keelson::kv::rocks {
constexpr std::size_t kFilesMax = 4096;
constexpr std::size_t kFileNameMax = 56;
// One table in a file that both processes map.
struct SyncedFile {
  char name[kFileNameMax];  // without its folder; "" ends the table
  std::uint64_t bytes;
};
// `table_path`: made when it is not there.
std::shared_ptr<rocksdb::FileSystem> NewPowerLossFileSystem(const std::string& table_path);
// After the process was killed: every file of `dir` loses what was not synced, or a part of it, or ends in garbage, as
// `seed` has it.
void LosePower(const std::string& dir, const std::string& table_path, std::uint64_t seed);
}  // namespace keelson::kv::rocks
