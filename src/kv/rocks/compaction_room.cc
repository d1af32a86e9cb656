#include "kv/rocks/compaction_room.h"

#include <filesystem>
#include <string>
#include <utility>

namespace keelson::kv::rocks {
namespace {

// Whether the compaction that this thread runs has no room. A job stays on one thread (max_subcompactions is 1), and
// every job that creates tables begins with a call of the listener.
thread_local bool t_no_room = false;

class CompactionRoom final : public rocksdb::EventListener {
 public:
  CompactionRoom(std::function<std::int64_t()> free_bytes, std::int64_t spare_bytes)
      : free_bytes_(std::move(free_bytes)), spare_bytes_(spare_bytes) {}
  const char* Name() const override { return "CompactionRoom"; }
  void OnFlushBegin(rocksdb::DB*, const rocksdb::FlushJobInfo&) override { t_no_room = false; }
  void OnCompactionBegin(rocksdb::DB*, const rocksdb::CompactionJobInfo& job) override {
    std::int64_t needed = spare_bytes_;
    for (const std::string& input : job.input_files) {
      std::error_code error;
      const auto size = std::filesystem::file_size(input, error);
      if (!error) needed += static_cast<std::int64_t>(size);
    }
    t_no_room = free_bytes_() < needed;
  }
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo&) override { t_no_room = false; }

 private:
  const std::function<std::int64_t()> free_bytes_;
  const std::int64_t spare_bytes_;
};

class RoomFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit RoomFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base) : FileSystemWrapper(base) {}
  const char* Name() const override { return "RoomFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    if (t_no_room && path.ends_with(".sst")) return rocksdb::IOStatus::NoSpace("no room for a compaction", path);
    return target()->NewWritableFile(path, options, result, debug);
  }
};

}  // namespace

std::shared_ptr<rocksdb::EventListener> NewCompactionRoom(std::function<std::int64_t()> free_bytes,
                                                          std::int64_t spare_bytes) {
  return std::make_shared<CompactionRoom>(std::move(free_bytes), spare_bytes);
}

std::shared_ptr<rocksdb::FileSystem> NewRoomFileSystem(std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<RoomFileSystem>(base);
}

}  // namespace keelson::kv::rocks
