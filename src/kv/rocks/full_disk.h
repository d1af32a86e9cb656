// A file system whose space a test takes away and gives back. For tests.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace keelson::kv::rocks {

// While `full` nothing can be appended to any file; each try is ENOSPC.
class FullFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit FullFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base) : FileSystemWrapper(base) {}
  const char* Name() const override { return "FullFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    auto status = target()->NewWritableFile(path, options, result, debug);
    if (status.ok()) *result = std::make_unique<File>(std::move(*result), full);
    return status;
  }
  std::atomic<bool> full{false};

 private:
  class File final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, const std::atomic<bool>& full)
        : FSWritableFileOwnerWrapper(std::move(file)), full_(full) {}
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      return full_ ? NoSpace() : target()->Append(data, options, debug);
    }
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             const rocksdb::DataVerificationInfo& info, rocksdb::IODebugContext* debug) override {
      return full_ ? NoSpace() : target()->Append(data, options, info, debug);
    }

   private:
    static rocksdb::IOStatus NoSpace() { return rocksdb::IOStatus::NoSpace("No space left on device"); }
    const std::atomic<bool>& full_;
  };
};

}  // namespace keelson::kv::rocks
