#include "kv/rocks/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "base/failpoint.h"

namespace keelson::kv::rocks {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr std::size_t kBlock = 4096;
constexpr std::size_t kBufferBytes = std::size_t{1024} * 1024;
constexpr std::size_t kAheadBytes = std::size_t{512} * 1024;
constexpr std::size_t kLargeBytes = std::size_t{64} * 1024;  // such a write allocates its own space

constexpr std::size_t Up(std::size_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }
constexpr std::size_t Down(std::size_t bytes) { return bytes / kBlock * kBlock; }

struct Free {
  void operator()(char* memory) const { ::free(memory); }
};
using AlignedBuffer = std::unique_ptr<char, Free>;

AlignedBuffer NewBuffer(std::size_t bytes) { return AlignedBuffer(static_cast<char*>(::aligned_alloc(kBlock, bytes))); }

class LogFile final : public rocksdb::FSWritableFile {
 public:
  // Null where the file cannot be written past the page cache.
  static std::unique_ptr<LogFile> Open(const std::string& path) {
    const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT | O_CLOEXEC, 0644);
    if (file < 0) return nullptr;
    std::unique_ptr<LogFile> log(new LogFile(path, file));
    // One block now, to see whether it can be: a store that is only opened shall not wait for more.
    if (!log->buffer_ || !log->Ahead(kBlock).ok()) return nullptr;
    return log;
  }
  ~LogFile() override {
    if (file_ >= 0) ::close(file_);
  }

  using FSWritableFile::Append;
  IOStatus Append(const rocksdb::Slice& data, const IOOptions&, IODebugContext*) override {
    for (std::size_t done = 0; done < data.size();) {
      const std::size_t part = std::min(data.size() - done, kBufferBytes - fill_);
      ::memcpy(buffer_.get() + fill_, data.data() + done, part);
      fill_ += part;
      done += part;
      dirty_ = true;
      if (fill_ < kBufferBytes) continue;
      auto written = WriteOut(false);
      if (!written.ok()) return written;
    }
    return IOStatus::OK();
  }
  // Unsynced bytes need not survive the process.
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    if (dirty_) {
      auto written = WriteOut(true);
      if (!written.ok()) return written;
    }
    if (!unsynced_) return IOStatus::OK();
    KS_FAILPOINT("kv/rocks/log-fdatasync");
    if (::fdatasync(file_) != 0) return Failed("fdatasync");
    unsynced_ = false;
    return IOStatus::OK();
  }
  IOStatus Close(const IOOptions&, IODebugContext*) override {
    if (file_ < 0) return IOStatus::OK();
    auto status = dirty_ ? WriteOut(false) : IOStatus::OK();
    if (status.ok() && ::ftruncate(file_, static_cast<off_t>(base_ + fill_)) != 0) status = Failed("ftruncate");
    if (::close(std::exchange(file_, -1)) != 0 && status.ok()) status = Failed("close");
    return status;
  }
  std::uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return base_ + fill_; }

 private:
  LogFile(std::string path, int file) : path_(std::move(path)), file_(file), buffer_(NewBuffer(kBufferBytes)) {}

  IOStatus Failed(const char* what) const {
    const std::string context = std::string("While ") + what + " of a log";
    const int error = errno;
    if (error == ENOSPC) return IOStatus::NoSpace(context, path_ + ": " + ::strerror(error));
    return IOStatus::IOError(context, path_ + ": " + ::strerror(error));
  }

  ssize_t PWrite(const iovec& part, std::uint64_t offset, int flags) const {
    if (flags != 0 && KS_FAILPOINT("kv/rocks/log-without-dsync")) {
      errno = EOPNOTSUPP;
      return -1;
    }
    return ::pwritev2(file_, &part, 1, static_cast<off_t>(offset), flags);
  }

  IOStatus WriteAt(char* data, std::size_t size, std::uint64_t offset, int flags) {
    while (size > 0) {
      const iovec part{.iov_base = data, .iov_len = size};
      const ssize_t written = PWrite(part, offset, durable_flag_ ? flags : 0);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0 && errno == EOPNOTSUPP && durable_flag_ && flags != 0) {
        durable_flag_ = false;  // Some file systems refuse the flag: Sync() calls fdatasync from now on.
        continue;
      }
      if (written < 0) return Failed("writing");
      // An unaligned rest would be refused with EINVAL.
      data += written;
      size -= static_cast<std::size_t>(written);
      offset += static_cast<std::uint64_t>(written);
    }
    return IOStatus::OK();
  }

  // Zeros ahead. The next sync sees to it that the file's size and blocks are on disk.
  IOStatus Ahead(std::size_t bytes) {
    const AlignedBuffer zeros = NewBuffer(bytes);
    if (!zeros) return IOStatus::IOError("no memory for a log's zeros");
    ::memset(zeros.get(), 0, bytes);
    auto status = WriteAt(zeros.get(), bytes, allocated_, 0);
    if (!status.ok()) return status;
    allocated_ += bytes;
    unsynced_ = true;
    return status;
  }

  // Whole blocks; what is behind the end in the last one is zeros. `sync`: durable at once, where the space is there
  // already and nothing before it waits for a sync.
  IOStatus WriteOut(bool sync) {
    const std::size_t size = Up(fill_);
    ::memset(buffer_.get() + fill_, 0, size - fill_);
    const bool grows = base_ + size > allocated_;
    if (grows && size < kLargeBytes) {
      auto status = Ahead(kAheadBytes);
      if (!status.ok()) return status;
    }
    const bool durable = sync && !unsynced_ && base_ + size <= allocated_;
    auto status = WriteAt(buffer_.get(), size, base_, durable ? RWF_DSYNC : 0);
    if (!status.ok()) return status;
    if (!durable || !durable_flag_) unsynced_ = true;
    allocated_ = std::max(allocated_, base_ + size);
    const std::size_t whole = Down(fill_);
    ::memmove(buffer_.get(), buffer_.get() + whole, fill_ - whole);
    base_ += whole;
    fill_ -= whole;
    dirty_ = false;
    return status;
  }

  const std::string path_;
  int file_;
  AlignedBuffer buffer_;
  std::uint64_t base_ = 0;       // of the buffer in the file
  std::size_t fill_ = 0;         // bytes in the buffer
  std::uint64_t allocated_ = 0;  // size of the file
  bool dirty_ = false;           // the buffer has what is not in the file
  bool durable_flag_ = true;     // writes may use RWF_DSYNC
  bool unsynced_ = false;        // the file has what may not be on disk
};

class LogFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit LogFileSystem(const std::shared_ptr<rocksdb::FileSystem>& base) : FileSystemWrapper(base) {}
  const char* Name() const override { return "LogFileSystem"; }
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override {
    if (path.ends_with(".log")) {
      *result = LogFile::Open(path);
      if (*result) return IOStatus::OK();
    }
    return target()->NewWritableFile(path, options, result, debug);
  }
};

}  // namespace

std::shared_ptr<rocksdb::FileSystem> NewLogFileSystem(std::shared_ptr<rocksdb::FileSystem> base) {
  return std::make_shared<LogFileSystem>(base);
}

}  // namespace keelson::kv::rocks
