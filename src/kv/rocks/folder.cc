#include "kv/rocks/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <vector>

#include "base/failpoint.h"
#include "base/strings.h"

namespace keelson::kv::rocks {
namespace {

Error SystemError(const std::string& what) {
  return {.code = ErrorCode::kInternal, .message = what + ": " + strerror(errno)};
}

std::string ReadSmallFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return "";
  char text[128];
  const ssize_t size = ::read(file, text, sizeof(text));
  ::close(file);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "";
}

// Makes the entries of a folder durable.
Result<void> SyncFolder(const std::string& path) {
  KS_FAILPOINT("kv/rocks/sync-folder");
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return SystemError("cannot open " + path);
  const bool synced = ::fsync(folder) == 0;
  Error failure = SystemError("cannot sync " + path);
  ::close(folder);
  if (!synced) return failure;
  return {};
}

// Makes the folder and those above it, durable in the folders that hold them.
Result<void> MakeFolder(const std::string& dir) {
  std::vector<std::filesystem::path> changed;  // folders that get an entry
  std::error_code error;
  const auto path = std::filesystem::absolute(dir, error).lexically_normal();
  for (auto at = path; !error && at.has_relative_path() && !std::filesystem::exists(at, error); at = at.parent_path())
    changed.push_back(at.parent_path());
  if (!error) std::filesystem::create_directories(path, error);
  if (error)
    return Error{.code = ErrorCode::kInternal, .message = "cannot make data folder " + dir + ": " + error.message()};
  for (const auto& at : changed) KS_RETURN_IF_ERROR(SyncFolder(at.string()));
  return {};
}

// Locks the open file, or closes it and reports the holder.
Result<void> Lock(int lock, const std::string& dir) {
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0) return {};
  const bool taken = errno == EWOULDBLOCK;
  Error failure = SystemError("cannot lock " + dir + "/lock");
  ::close(lock);
  if (!taken) return failure;
  const std::string owner(base::Trim(ReadSmallFile(dir + "/lock")));
  return Error{.code = ErrorCode::kInUse,
               .message = "data folder in use: " + dir + (owner.empty() ? "" : " (by process " + owner + ")")};
}

// Two copies of the number, so that a torn write is seen.
std::string DurableText(Revision revision) {
  const std::string number = std::to_string(revision);
  return number + " " + number + "\n";
}

}  // namespace

Result<std::unique_ptr<Folder>> Folder::Take(const std::string& dir) {
  KS_RETURN_IF_ERROR(MakeFolder(dir));
  const std::string path = dir + "/lock";
  const int lock = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return SystemError("cannot open " + path);
  KS_RETURN_IF_ERROR(Lock(lock, dir));
  const std::string owner = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock, 0) != 0 || ::pwrite(lock, owner.data(), owner.size(), 0) < 0) {
    Error failure = SystemError("cannot write " + path);
    ::close(lock);
    return failure;
  }
  std::unique_ptr<Folder> folder(new Folder(dir, lock));
  folder->OpenReserve();
  return folder;
}

Result<std::unique_ptr<Folder>> Folder::TakeToRead(const std::string& dir) {
  int lock = ::open((dir + "/lock").c_str(), O_RDONLY | O_CLOEXEC);
  // A copy of a store may come without the file; then no process holds it.
  if (lock < 0 && errno == ENOENT) lock = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return SystemError("cannot open " + dir);
  KS_RETURN_IF_ERROR(Lock(lock, dir));
  return std::unique_ptr<Folder>(new Folder(dir, lock));
}

Folder::~Folder() {
  if (durable_ >= 0) ::close(durable_);
  if (reserve_ >= 0) ::close(reserve_);
  ::close(lock_);
}

std::int64_t FreeBytesAt(const std::string& dir) {
  if (KS_FAILPOINT("kv/rocks/disk-full")) return 0;
  struct statvfs info{};
  if (::statvfs(dir.c_str(), &info) != 0) return INT64_MAX;
  return static_cast<std::int64_t>(info.f_bavail) * static_cast<std::int64_t>(info.f_frsize);
}

std::int64_t Folder::UsedBytes() const {
  std::int64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(db_path(), error), end; !error && at != end; at.increment(error)) {
    struct stat info{};
    if (::stat(at->path().c_str(), &info) == 0) bytes += info.st_blocks * 512;
  }
  return bytes;
}

std::optional<Revision> Folder::ReadDurable() const {
  const std::string text = ReadSmallFile(dir_ + "/durable");
  Revision first = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), first);
  if (parsed.ec != std::errc() || !text.starts_with(DurableText(first))) return std::nullopt;
  return first;
}

void Folder::WriteDurable(Revision revision, bool sync) {
  if (durable_ < 0) durable_ = ::open((dir_ + "/durable").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string text = DurableText(revision);
  // The mark is a lower bound, so a failed write does no harm.
  if (durable_ < 0 || ::pwrite(durable_, text.data(), text.size(), 0) < 0) return;
  if (sync) ::fdatasync(durable_);
}

void Folder::RemoveDurable() { ::unlink((dir_ + "/durable").c_str()); }

Result<void> Folder::Sync() const { return SyncFolder(dir_); }

Result<void> RewriteFile(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return SystemError("cannot open " + path);
  std::vector<char> chunk(std::size_t{1} * 1024 * 1024);
  ssize_t got = 0;
  ssize_t written = 0;
  for (off_t offset = 0; got == written; offset += written) {
    got = ::pread(file, chunk.data(), chunk.size(), offset);
    if (got <= 0) break;
    written = ::pwrite(file, chunk.data(), static_cast<std::size_t>(got), offset);
  }
  Error failure = SystemError("cannot rewrite " + path);
  ::close(file);
  if (got != 0) return failure;
  return {};
}

Result<void> Folder::ProbeWrite() const {
  const std::string path = dir_ + "/probe";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return SystemError("cannot write " + path);
  const std::string block(4096, 'p');
  const bool written =
      ::write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size()) && ::fsync(file) == 0;
  Error failure = SystemError("cannot write " + path);
  ::close(file);
  ::unlink(path.c_str());
  if (!written) return failure;
  return {};
}

void Folder::OpenReserve() {
  struct stat info{};
  reserve_ = ::open((dir_ + "/reserve").c_str(), O_WRONLY | O_CLOEXEC);
  if (reserve_ >= 0 && ::fstat(reserve_, &info) == 0) reserve_bytes_ = info.st_size;
}

void Folder::FillReserve(std::int64_t bytes) {
  if (bytes <= reserve_bytes_) return;
  if (reserve_ < 0) reserve_ = ::open((dir_ + "/reserve").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (reserve_ >= 0 && ::fallocate(reserve_, 0, 0, bytes) == 0) reserve_bytes_ = bytes;
}

void Folder::ReleaseReserve(std::int64_t bytes) {
  const std::int64_t left = std::max<std::int64_t>(reserve_bytes_ - bytes, 0);
  if (reserve_bytes_ > 0 && ::ftruncate(reserve_, left) == 0) reserve_bytes_ = left;
}

Result<void> Folder::FinishRestore() {
  const std::string restored = restoring_path() + "/db";
  KS_RETURN_IF_ERROR(SyncFolder(restored));
  // A mark of the store that was here before says nothing about the restored one, and must be gone before that appears.
  RemoveDurable();
  KS_RETURN_IF_ERROR(SyncFolder(dir_));
  if (::rename(restored.c_str(), db_path().c_str()) != 0) return SystemError("cannot rename " + restored);
  KS_RETURN_IF_ERROR(SyncFolder(dir_));
  KS_RETURN_IF_ERROR(SyncFolder(dir_ + "/.."));
  std::error_code ignored;
  std::filesystem::remove_all(restoring_path(), ignored);  // A remnant beside a complete database does no harm.
  return {};
}

}  // namespace keelson::kv::rocks
