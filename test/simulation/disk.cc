#include "simulation/disk.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/check.h"

namespace keelson::simulation {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kSector = 512;
constexpr int kDescriptorsMax = 4096;
constexpr std::int64_t kNoLimit = -1;
constexpr std::int64_t kPlenty = std::int64_t{64} << 30;

namespace real {
int OpenAt(const char* path, int flags, mode_t mode) {
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int Close(int fd) { return static_cast<int>(::syscall(SYS_close, fd)); }
ssize_t PWrite(int fd, const void* data, std::size_t size, off_t offset) {
  return ::syscall(SYS_pwrite64, fd, data, size, offset);
}
ssize_t PRead(int fd, void* data, std::size_t size, off_t offset) {
  return ::syscall(SYS_pread64, fd, data, size, offset);
}
int Truncate(int fd, off_t size) { return static_cast<int>(::syscall(SYS_ftruncate, fd, size)); }
int Unlink(const char* path) { return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0)); }
int Rename(const char* from, const char* to) {
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}
}  // namespace real

thread_local const Disk::WaitFunction* t_wait = nullptr;
thread_local bool t_obeys_freeze = false;

void Wait(std::chrono::nanoseconds least) {
  if (t_wait != nullptr) (*t_wait)(least);
}

int Fail(int error) {
  errno = error;
  return -1;
}

std::string Parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

// The durable content of a page that was written since.
struct Page {
  std::string before;
  bool stuck = false;  // a sync of it failed: later ones do nothing for it
};

struct File {
  std::map<std::uint64_t, Page> pages;  // not durable
  std::uint64_t durable_size = 0;
};

struct Descriptor {
  bool directory = false;
  bool direct = false;
  bool log = false;
  std::string path;
  std::uint64_t inode = 0;
};

// A change of a directory that is not durable.
struct EntryChange {
  enum class Kind : std::uint8_t { kCreate, kUnlink, kRename } kind;
  std::string path;   // after the change, where there is one
  std::string from;   // of a rename
  std::string grave;  // where the file lies that went; "" for none
};

std::uint64_t InodeOf(int fd) {
  struct stat info{};
  KS_CHECK(::fstat(fd, &info) == 0);
  return info.st_ino;
}

std::uint64_t SizeOf(int fd) {
  struct stat info{};
  KS_CHECK(::fstat(fd, &info) == 0);
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace

struct Disk::Impl {
  explicit Impl(std::string root_in) : root(std::move(root_in)), graves(root + ".graves") {
    std::filesystem::create_directories(graves);
  }

  bool Owns(const char* path) const {
    return ::strncmp(path, root.c_str(), root.size()) == 0 && (path[root.size()] == '/' || path[root.size()] == '\0');
  }
  Descriptor* Find(int fd) {
    if (fd < 0 || fd >= kDescriptorsMax || !tracked[fd].load(std::memory_order_acquire)) return nullptr;
    std::lock_guard guard(mutex);
    return descriptors[fd].get();
  }
  // REQUIRES: the mutex. True when the call must fail.
  bool Frozen() {
    if (t_obeys_freeze && countdown > 0 && --countdown == 0) frozen = true;
    return frozen;
  }
  // REQUIRES: the mutex.
  bool Take(std::uint64_t bytes) {
    if (free == kNoLimit || bytes == 0) return true;
    if (static_cast<std::int64_t>(bytes) > free) {
      ++figures.refused_writes;
      return false;
    }
    free -= static_cast<std::int64_t>(bytes);
    return true;
  }
  void Give(std::uint64_t bytes) {
    if (free != kNoLimit) free += static_cast<std::int64_t>(bytes);
  }

  int Open(const char* path, int flags, mode_t mode);
  int Close(int fd);
  ssize_t Write(int fd, Descriptor& of, const char* data, std::size_t size, std::uint64_t offset, bool durable);
  int Sync(int fd, Descriptor& of);
  int Truncate(int fd, Descriptor& of, std::uint64_t size);
  int Unlink(const char* path);
  int Rename(const char* from, const char* to);
  std::string Bury(const std::string& path);
  void SaveBefore(int fd, File& file, std::uint64_t begin, std::uint64_t end);
  void SyncDirectory(const std::string& path);
  void UndoEntries(base::Random& random);
  void LosePages(const std::string& path, base::Random& random);

  const std::string root;
  const std::string graves;
  std::mutex mutex;
  std::atomic<bool> tracked[kDescriptorsMax] = {};
  std::map<int, std::unique_ptr<Descriptor>> descriptors;
  std::map<std::uint64_t, File> files;  // by inode
  std::map<std::string, std::vector<EntryChange>> changes;
  std::uint64_t last_grave = 0;
  bool frozen = false;
  int countdown = 0;
  std::int64_t free = kNoLimit;
  int failing_syncs = 0;
  bool lying = false;
  Figures figures{};
};

namespace {
std::atomic<Disk::Impl*> the_disk{nullptr};
}

int Disk::Impl::Open(const char* path, int flags, mode_t mode) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  std::lock_guard guard(mutex);
  struct stat info{};
  const bool existed = ::stat(path, &info) == 0;
  if (writes && (!existed || (flags & O_TRUNC) != 0) && Frozen()) return Fail(EIO);
  if (!existed && (flags & O_CREAT) != 0 && free != kNoLimit && !Take(kPage)) return Fail(ENOSPC);
  int wanted = flags & ~(O_DIRECT | O_TRUNC);
  if (writes) wanted = (wanted & ~O_ACCMODE) | O_RDWR;  // Overwritten bytes are read first.
  const int fd = real::OpenAt(path, wanted, mode);
  if (fd < 0 || fd >= kDescriptorsMax) return fd;
  const bool directory = existed && S_ISDIR(info.st_mode);
  if (!writes && !directory) return fd;
  auto descriptor = std::make_unique<Descriptor>();
  descriptor->directory = directory;
  descriptor->direct = (flags & O_DIRECT) != 0;
  descriptor->path = path;
  descriptor->log = descriptor->path.ends_with(".log");
  descriptor->inode = InodeOf(fd);
  if (!existed) {
    changes[Parent(path)].push_back({.kind = EntryChange::Kind::kCreate, .path = path});
    files[descriptor->inode] = File();
  } else if (writes && !files.contains(descriptor->inode)) {
    files[descriptor->inode] = File{.durable_size = SizeOf(fd)};
  }
  if (existed && (flags & O_TRUNC) != 0 && SizeOf(fd) > 0) {
    Give(SizeOf(fd));
    SaveBefore(fd, files[descriptor->inode], 0, SizeOf(fd));
    KS_CHECK(real::Truncate(fd, 0) == 0);
  }
  descriptors[fd] = std::move(descriptor);
  tracked[fd].store(true, std::memory_order_release);
  return fd;
}

int Disk::Impl::Close(int fd) {
  std::lock_guard guard(mutex);
  tracked[fd].store(false, std::memory_order_release);
  descriptors.erase(fd);
  return real::Close(fd);
}

void Disk::Impl::SaveBefore(int fd, File& file, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t page = begin / kPage; page * kPage < end; ++page) {
    const auto [at, added] = file.pages.try_emplace(page);
    at->second.stuck = false;
    if (!added) continue;
    const std::uint64_t offset = page * kPage;
    if (offset >= file.durable_size) continue;  // There is nothing of it on the disk.
    std::string before(std::min(kPage, file.durable_size - offset), '\0');
    const ssize_t got = real::PRead(fd, before.data(), before.size(), static_cast<off_t>(offset));
    before.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    at->second.before = std::move(before);
  }
}

ssize_t Disk::Impl::Write(int fd, Descriptor& of, const char* data, std::size_t size, std::uint64_t offset,
                          bool durable) {
  if (of.direct &&
      (size % kSector != 0 || offset % kSector != 0 || reinterpret_cast<std::uintptr_t>(data) % kSector != 0))
    return Fail(EINVAL);
  ssize_t written = 0;
  {
    std::lock_guard guard(mutex);
    if (Frozen()) return Fail(EIO);
    const std::uint64_t old_size = SizeOf(fd);
    const std::uint64_t end = offset + size;
    if (end > old_size && !Take(end - old_size)) return Fail(ENOSPC);
    ++figures.writes;
    SaveBefore(fd, files[of.inode], offset, end);
    written = real::PWrite(fd, data, size, static_cast<off_t>(offset));
    KS_CHECK(written == static_cast<ssize_t>(size));
  }
  if (!durable) return written;
  if (of.log) Wait(std::chrono::nanoseconds(0));
  std::lock_guard guard(mutex);
  if (Frozen()) return Fail(EIO);
  ++figures.syncs;
  File& file = files[of.inode];
  if (failing_syncs > 0) {
    --failing_syncs;
    ++figures.failed_syncs;
    for (std::uint64_t page = offset / kPage; page * kPage < offset + size; ++page) file.pages[page].stuck = true;
    return Fail(EIO);
  }
  if (lying) return written;
  for (std::uint64_t page = offset / kPage; page * kPage < offset + size; ++page) file.pages.erase(page);
  file.durable_size = std::max(file.durable_size, offset + size);
  return written;
}

int Disk::Impl::Sync(int fd, Descriptor& of) {
  if (of.log) Wait(std::chrono::nanoseconds(0));
  std::lock_guard guard(mutex);
  if (Frozen()) return Fail(EIO);
  ++figures.syncs;
  if (lying) return 0;
  if (of.directory) {
    SyncDirectory(of.path);
    return 0;
  }
  File& file = files[of.inode];
  if (of.log && failing_syncs > 0) {
    --failing_syncs;
    ++figures.failed_syncs;
    for (auto& [number, page] : file.pages) page.stuck = true;
    return Fail(EIO);
  }
  std::erase_if(file.pages, [](const auto& entry) { return !entry.second.stuck; });
  file.durable_size = SizeOf(fd);
  return 0;
}

int Disk::Impl::Truncate(int fd, Descriptor& of, std::uint64_t size) {
  std::lock_guard guard(mutex);
  if (Frozen()) return Fail(EIO);
  const std::uint64_t old_size = SizeOf(fd);
  if (size > old_size && !Take(size - old_size)) return Fail(ENOSPC);
  if (size < old_size) {
    Give(old_size - size);
    SaveBefore(fd, files[of.inode], size, old_size);
  }
  return real::Truncate(fd, static_cast<off_t>(size));
}

// Path for an unlinked file until the unlink is durable.
std::string Disk::Impl::Bury(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return "";
  Give(static_cast<std::uint64_t>(info.st_size));
  std::string grave = graves + "/" + std::to_string(++last_grave);
  KS_CHECK(real::Rename(path.c_str(), grave.c_str()) == 0);
  return grave;
}

int Disk::Impl::Unlink(const char* path) {
  std::lock_guard guard(mutex);
  struct stat info{};
  if (::stat(path, &info) != 0) return -1;
  if (S_ISDIR(info.st_mode)) return Fail(EISDIR);
  if (Frozen()) return Fail(EIO);
  changes[Parent(path)].push_back({.kind = EntryChange::Kind::kUnlink, .path = path, .grave = Bury(path)});
  return 0;
}

int Disk::Impl::Rename(const char* from, const char* to) {
  std::lock_guard guard(mutex);
  if (Frozen()) return Fail(EIO);
  struct stat info{};
  if (::stat(from, &info) != 0) return -1;
  const std::string grave = Bury(to);
  const int renamed = real::Rename(from, to);
  KS_CHECK(renamed == 0);
  changes[Parent(to)].push_back({.kind = EntryChange::Kind::kRename, .path = to, .from = from, .grave = grave});
  return 0;
}

void Disk::Impl::SyncDirectory(const std::string& path) {
  std::string name = path;
  while (name.ends_with('/')) name.pop_back();
  const auto found = changes.find(name);
  if (found == changes.end()) return;
  for (const EntryChange& change : found->second) {
    if (!change.grave.empty()) real::Unlink(change.grave.c_str());
  }
  changes.erase(found);
}

void Disk::Impl::UndoEntries(base::Random& random) {
  for (auto& [directory, all] : changes) {
    const std::size_t kept = random.Below(3) == 0 ? 0 : random.Below(all.size() + 1);
    for (std::size_t i = all.size(); i > kept; --i) {
      const EntryChange& change = all[i - 1];
      ++figures.lost_entries;
      if (change.kind == EntryChange::Kind::kCreate) real::Unlink(change.path.c_str());
      if (change.kind == EntryChange::Kind::kRename) real::Rename(change.path.c_str(), change.from.c_str());
      if (!change.grave.empty()) real::Rename(change.grave.c_str(), change.path.c_str());
    }
  }
}

// Of each page that was not durable: the old one, the new one, or the first sectors of the new one.
void Disk::Impl::LosePages(const std::string& path, base::Random& random) {
  const int fd = real::OpenAt(path.c_str(), O_RDWR | O_CLOEXEC, 0);
  if (fd < 0) return;
  const auto found = files.find(InodeOf(fd));
  if (found != files.end() && (!found->second.pages.empty() || SizeOf(fd) != found->second.durable_size)) {
    const File& file = found->second;
    const std::uint64_t mode = random.Below(4);  // all of it, nothing, or page by page
    std::uint64_t end = file.durable_size;
    const std::uint64_t size = SizeOf(fd);
    if (mode == 0) end = size;
    for (const auto& [number, page] : file.pages) {
      const std::uint64_t fate = mode == 0 ? 0 : mode == 1 ? 1 : random.Below(3);
      if (fate == 0) {
        end = std::max(end, std::min(size, (number + 1) * kPage));
        continue;
      }
      std::string before = page.before;
      before.resize(kPage, '\0');
      const std::uint64_t kept = fate == 2 ? kSector * (1 + random.Below(kPage / kSector - 1)) : 0;
      if (kept > 0) end = std::max(end, std::min(size, number * kPage + kept));
      ++(kept > 0 ? figures.torn_pages : figures.lost_pages);
      KS_CHECK(real::PWrite(fd, before.data() + kept, kPage - kept, static_cast<off_t>(number * kPage + kept)) > 0);
    }
    KS_CHECK(real::Truncate(fd, static_cast<off_t>(end)) == 0);
  }
  real::Close(fd);
}

Disk::Disk(std::string root) : impl_(std::make_unique<Impl>(std::move(root))) {
  KS_CHECK(the_disk.exchange(impl_.get()) == nullptr);
}

Disk::~Disk() {
  the_disk = nullptr;
  std::filesystem::remove_all(impl_->graves);
}

void Disk::Freeze() {
  std::lock_guard guard(impl_->mutex);
  impl_->frozen = true;
}

bool Disk::frozen() const {
  std::lock_guard guard(impl_->mutex);
  return impl_->frozen;
}

void Disk::FreezeAfter(int calls) {
  std::lock_guard guard(impl_->mutex);
  impl_->countdown = calls;
}

void Disk::Thaw(Loss loss, base::Random& random) {
  std::lock_guard guard(impl_->mutex);
  KS_CHECK(impl_->frozen);
  for (const auto& [fd, of] : impl_->descriptors) KS_CHECK(of == nullptr);
  if (loss == Loss::kUnsynced) {
    impl_->UndoEntries(random);
    std::set<std::string> paths;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(impl_->root)) {
      if (entry.is_regular_file()) paths.insert(entry.path().string());
    }
    for (const std::string& path : paths) impl_->LosePages(path, random);
    impl_->changes.clear();
    impl_->files.clear();  // All that is there is on the disk.
    for (const auto& grave : std::filesystem::directory_iterator(impl_->graves)) real::Unlink(grave.path().c_str());
    impl_->lying = false;
  }
  impl_->frozen = false;
  impl_->countdown = 0;
  impl_->failing_syncs = 0;
}

void Disk::SetFree(std::int64_t bytes) {
  std::lock_guard guard(impl_->mutex);
  impl_->free = bytes < 0 ? kNoLimit : bytes;
}

void Disk::FailSyncs(int count) {
  std::lock_guard guard(impl_->mutex);
  impl_->failing_syncs = count;
}

void Disk::Lie() {
  std::lock_guard guard(impl_->mutex);
  impl_->lying = true;
}

void Disk::Waits(const WaitFunction* wait) { t_wait = wait; }
void Disk::ObeyFreeze() { t_obeys_freeze = true; }

Disk::Figures Disk::figures() const {
  std::lock_guard guard(impl_->mutex);
  return impl_->figures;
}

}  // namespace keelson::simulation

// The system calls.
namespace {

using keelson::simulation::Descriptor;
using keelson::simulation::Disk;
using keelson::simulation::the_disk;
namespace real = keelson::simulation::real;

int OpenFile(const char* path, int flags, mode_t mode) {
  Disk::Impl* const disk = the_disk.load(std::memory_order_acquire);
  if (disk != nullptr && disk->Owns(path)) return disk->Open(path, flags, mode);
  return real::OpenAt(path, flags, mode);
}

Descriptor* Tracked(int fd, Disk::Impl** disk) {
  *disk = the_disk.load(std::memory_order_acquire);
  return *disk == nullptr ? nullptr : (*disk)->Find(fd);
}

ssize_t WriteFile(int fd, const void* data, std::size_t size, off_t offset, int flags) {
  Disk::Impl* disk = nullptr;
  Descriptor* const of = Tracked(fd, &disk);
  if (of == nullptr) {
    const iovec part{.iov_base = const_cast<void*>(data), .iov_len = size};
    return ::syscall(SYS_pwritev2, fd, &part, 1, offset, 0, flags);
  }
  return disk->Write(fd, *of, static_cast<const char*>(data), size, static_cast<std::uint64_t>(offset),
                     (flags & RWF_DSYNC) != 0);
}

int SyncFile(int fd, long call) {
  Disk::Impl* disk = nullptr;
  Descriptor* const of = Tracked(fd, &disk);
  return of == nullptr ? static_cast<int>(::syscall(call, fd)) : disk->Sync(fd, *of);
}

int TruncateFile(int fd, off_t size) {
  Disk::Impl* disk = nullptr;
  Descriptor* const of = Tracked(fd, &disk);
  return of == nullptr ? real::Truncate(fd, size) : disk->Truncate(fd, *of, static_cast<std::uint64_t>(size));
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

template <class T>
int FreeSpace(const char* path, T* info, const char* name) {
  using Function = int (*)(const char*, T*);
  static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
  const int got = next(path, info);
  Disk::Impl* const disk = the_disk.load(std::memory_order_acquire);
  if (got != 0 || disk == nullptr || !disk->Owns(path)) return got;
  std::lock_guard guard(disk->mutex);
  const std::int64_t free = disk->free < 0 ? keelson::simulation::kPlenty : disk->free;
  info->f_frsize = 1;
  info->f_bavail = info->f_bfree = static_cast<unsigned long>(free);
  return 0;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenFile(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return OpenFile(path, flags, mode);
}
int close(int fd) {
  Disk::Impl* disk = nullptr;
  return Tracked(fd, &disk) == nullptr ? real::Close(fd) : disk->Close(fd);
}
ssize_t write(int fd, const void* data, std::size_t size) {
  Disk::Impl* disk = nullptr;
  if (Tracked(fd, &disk) == nullptr) return ::syscall(SYS_write, fd, data, size);
  const bool appends = (::fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t offset = ::lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
  const ssize_t written = WriteFile(fd, data, size, offset, 0);
  if (written > 0) ::lseek(fd, offset + written, SEEK_SET);
  return written;
}
ssize_t pwrite(int fd, const void* data, std::size_t size, off_t offset) {
  return WriteFile(fd, data, size, offset, 0);
}
ssize_t pwrite64(int fd, const void* data, std::size_t size, off64_t offset) {
  return WriteFile(fd, data, size, offset, 0);
}
ssize_t pwritev2(int fd, const iovec* parts, int count, off_t offset, int flags) {
  if (count == 1) return WriteFile(fd, parts->iov_base, parts->iov_len, offset, flags);
  return ::syscall(SYS_pwritev2, fd, parts, count, offset, 0, flags);
}
ssize_t pwritev64v2(int fd, const iovec* parts, int count, off64_t offset, int flags) {
  return pwritev2(fd, parts, count, offset, flags);
}
int fsync(int fd) { return SyncFile(fd, SYS_fsync); }
int fdatasync(int fd) { return SyncFile(fd, SYS_fdatasync); }
int ftruncate(int fd, off_t size) noexcept { return TruncateFile(fd, size); }
int ftruncate64(int fd, off64_t size) noexcept { return TruncateFile(fd, size); }
int fallocate(int fd, int mode, off_t offset, off_t size) {
  Disk::Impl* disk = nullptr;
  Descriptor* const of = Tracked(fd, &disk);
  if (of == nullptr) return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, size));
  return disk->Truncate(fd, *of, static_cast<std::uint64_t>(offset + size));  // A hole: nothing reads it.
}
int fallocate64(int fd, int mode, off64_t offset, off64_t size) { return fallocate(fd, mode, offset, size); }
int unlink(const char* path) noexcept {
  Disk::Impl* const disk = the_disk.load(std::memory_order_acquire);
  return disk != nullptr && disk->Owns(path) ? disk->Unlink(path) : real::Unlink(path);
}
int rename(const char* from, const char* to) noexcept {
  Disk::Impl* const disk = the_disk.load(std::memory_order_acquire);
  return disk != nullptr && disk->Owns(to) ? disk->Rename(from, to) : real::Rename(from, to);
}
int statvfs(const char* path, struct statvfs* info) noexcept { return FreeSpace(path, info, "statvfs"); }
int statvfs64(const char* path, struct statvfs64* info) noexcept { return FreeSpace(path, info, "statvfs64"); }
int nanosleep(const timespec* time, timespec* left) {
  if (keelson::simulation::t_wait != nullptr) {
    keelson::simulation::Wait(std::chrono::seconds(time->tv_sec) + std::chrono::nanoseconds(time->tv_nsec));
    return 0;
  }
  return static_cast<int>(::syscall(SYS_nanosleep, time, left));
}

}  // extern "C"
