#include "kv/rocks/testing/power_loss.h"

#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>
#include <string_view>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/testing/seeded_random.h"
#include "kv/rocks/log_file.h"

namespace keelson::kv::rocks {
namespace {

std::string BaseName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

class Table {
 public:
  explicit Table(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    KS_CHECK(file >= 0 && ::ftruncate(file, sizeof(SyncedFile) * kFilesMax) == 0);
    void* memory = ::mmap(nullptr, sizeof(SyncedFile) * kFilesMax, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    KS_CHECK(memory != MAP_FAILED);
    ::close(file);
    files_ = static_cast<SyncedFile*>(memory);
  }
  ~Table() { ::munmap(files_, sizeof(SyncedFile) * kFilesMax); }

  void Set(const std::string& name, std::uint64_t bytes) {
    std::lock_guard guard(mutex_);
    Slot(name)->bytes = bytes;
  }
  void Rename(const std::string& from, const std::string& to) {
    std::lock_guard guard(mutex_);
    Slot(to)->bytes = Slot(from)->bytes;
    Slot(from)->bytes = 0;
  }
  // A file not in the table is older than the process, so all of it is on disk.
  std::uint64_t Get(const std::string& name, std::uint64_t otherwise) const {
    for (std::size_t i = 0; i < kFilesMax && files_[i].name[0] != '\0'; ++i) {
      if (name == files_[i].name) return files_[i].bytes;
    }
    return otherwise;
  }

 private:
  SyncedFile* Slot(const std::string& name) {
    KS_CHECK(name.size() < kFileNameMax);
    for (std::size_t i = 0; i < kFilesMax; ++i) {
      if (files_[i].name[0] == '\0') ::memcpy(files_[i].name, name.c_str(), name.size() + 1);
      if (name == files_[i].name) return &files_[i];
    }
    KS_CHECK(false);
    return nullptr;
  }
  std::mutex mutex_;
  SyncedFile* files_ = nullptr;
};

class NotingFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // `written`: what the file held when it was opened.
  NotingFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string name, std::uint64_t written, Table& table)
      : FSWritableFileOwnerWrapper(std::move(file)), name_(std::move(name)), table_(table), written_(written) {}
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    written_ += data.size();
    return target()->Append(data, options, debug);
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& info, rocksdb::IODebugContext* debug) override {
    written_ += data.size();
    return target()->Append(data, options, info, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    auto status = target()->Sync(options, debug);
    // A process that ends here leaves bytes that its successor reads and a loss of power takes.
    KS_FAILPOINT("kv/rocks/power-loss/before-durable");
    if (status.ok()) table_.Set(name_, written_);
    return status;
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  const std::string name_;
  Table& table_;
  std::uint64_t written_;
};

class NotingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit NotingFileSystem(const std::string& table_path)
      : FileSystemWrapper(NewLogFileSystem(rocksdb::FileSystem::Default())), table_(table_path) {}
  const char* Name() const override { return "NotingFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    auto status = target()->NewWritableFile(path, options, result, debug);
    if (!status.ok()) return status;
    table_.Set(BaseName(path), 0);
    *result = std::make_unique<NotingFile>(std::move(*result), BaseName(path), 0, table_);
    return status;
  }
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* debug) override {
    auto status = target()->ReopenWritableFile(path, options, result, debug);
    if (!status.ok()) return status;
    *result =
        std::make_unique<NotingFile>(std::move(*result), BaseName(path), std::filesystem::file_size(path), table_);
    return status;
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    auto status = target()->RenameFile(from, to, options, debug);
    if (status.ok()) table_.Rename(BaseName(from), BaseName(to));
    return status;
  }

 private:
  Table table_;
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> NewPowerLossFileSystem(const std::string& table_path) {
  return std::make_shared<NotingFileSystem>(table_path);
}

void LosePower(const std::string& dir, const std::string& table_path, std::uint64_t seed) {
  Table table(table_path);
  const auto random = base::Seeded(seed);
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (name == "LOCK" || name.starts_with("LOG")) continue;
    const std::uint64_t size = entry.file_size();
    const std::uint64_t synced = std::min(size, table.Get(name, size));
    if (size == synced) continue;
    const std::uint64_t choice = random->Below(4);
    // Half of the time nothing of the rest arrived, else a part of it, which may end in whatever the disk had there.
    const std::uint64_t kept = choice < 2 ? synced : synced + random->Below(size - synced + 1);
    std::filesystem::resize_file(entry.path(), kept);
    if (choice != 3 || kept == synced) continue;
    const int file = ::open(entry.path().c_str(), O_WRONLY | O_CLOEXEC);
    std::string garbage(std::min<std::uint64_t>(512, kept - synced), '\0');
    random->Fill({reinterpret_cast<std::uint8_t*>(garbage.data()), garbage.size()});
    KS_CHECK(::pwrite(file, garbage.data(), garbage.size(), static_cast<off_t>(kept - garbage.size())) >= 0);
    ::close(file);
  }
}

}  // namespace keelson::kv::rocks
