#include "app/backup/backup.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <cerrno>
#include <filesystem>

#include "app/backup/tar.h"
#include "app/files.h"
#include "app/version.h"
#include "async/io_pool.h"
#include "base/strings.h"
#include "kv/rocks/tools.h"
#include "object/time.h"

namespace keelson::app {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kAbout = "backup.txt", kSnapshot = "store.snapshot", kPKI = "pki/";
constexpr std::size_t kCopyBytes = 256 * 1024;

std::int64_t Seconds(base::Clock::SystemTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

Error Failed(std::string_view action, const std::string& path) {
  return Error(std::string(action) + " " + path + ": " + ::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// A file that goes away at the end unless it was kept.
struct Temporary {
  explicit Temporary(std::string with) : path(std::move(with)) { ::unlink(path.c_str()); }
  ~Temporary() {
    if (!path.empty()) ::unlink(path.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  std::string path;
};

class TarWriter {
 public:
  TarWriter(int fd, std::string path, std::int64_t mtime) : fd_(fd), path_(std::move(path)), mtime_(mtime) {}

  Outcome<void, Error> Add(std::string_view name, std::string_view bytes, mode_t mode) {
    KS_RETURN_IF_ERROR(Header(name, bytes.size(), mode));
    KS_RETURN_IF_ERROR(Write(bytes));
    return Pad(TarPadding(bytes.size()));
  }
  Outcome<void, Error> AddFile(std::string_view name, const std::string& from, mode_t mode) {
    Descriptor file(from, O_RDONLY);
    struct stat info{};
    if (file.get() < 0 || ::fstat(file.get(), &info) != 0) return Failed("cannot read", from);
    KS_RETURN_IF_ERROR(Header(name, static_cast<std::uint64_t>(info.st_size), mode));
    std::string chunk(kCopyBytes, '\0');
    for (auto left = static_cast<std::uint64_t>(info.st_size); left > 0;) {
      const ssize_t got = ::read(file.get(), chunk.data(), std::min<std::uint64_t>(left, chunk.size()));
      if (got <= 0) return Failed("cannot read", from);
      KS_RETURN_IF_ERROR(Write({chunk.data(), static_cast<std::size_t>(got)}));
      left -= static_cast<std::uint64_t>(got);
    }
    return Pad(TarPadding(static_cast<std::uint64_t>(info.st_size)));
  }
  Outcome<void, Error> Finish() {
    KS_RETURN_IF_ERROR(Pad(2 * kTarBlock));
    if (::fsync(fd_) != 0) return Failed("cannot write", path_);
    return {};
  }

 private:
  Outcome<void, Error> Header(std::string_view name, std::uint64_t size, mode_t mode) {
    const auto block = MakeTarHeader({.name = std::string(name), .size = size, .mode = mode, .mtime = mtime_});
    return Write({block.data(), block.size()});
  }
  Outcome<void, Error> Pad(std::size_t bytes) { return Write(std::string(bytes, '\0')); }
  Outcome<void, Error> Write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Failed("cannot write", path_);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
  }

  int fd_;
  std::string path_;
  std::int64_t mtime_;
};

Outcome<void, Error> AddPKI(TarWriter& tar, const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->is_regular_file(error)) files.push_back(at->path());
  }
  if (error) return Error("cannot read " + folder + ": " + error.message());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const std::string name = std::string(kPKI) + file.filename().string();
    if (name.size() > kTarNameMax) return Error("the name of " + file.string() + " is too long for a backup");
    struct stat info{};
    if (::stat(file.c_str(), &info) != 0) return Failed("cannot read", file);
    KS_TRY(const std::string bytes, ReadSmallFile(file));
    KS_RETURN_IF_ERROR(tar.Add(name, bytes, info.st_mode & 0777));
  }
  return {};
}

Outcome<void, Error> ReadExactly(int fd, char* out, std::size_t bytes, const std::string& path) {
  while (bytes > 0) {
    const ssize_t got = ::read(fd, out, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("cannot read", path);
    if (got == 0) return Error(path + " ends too early: it is not a whole backup");
    out += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return {};
}

// Calls `visit` for each file of the archive with its entry and a function that copies its contents into a file.
using CopyTo = std::function<Outcome<void, Error>(const std::string& target)>;
using Visit = std::function<Outcome<void, Error>(const TarEntry& entry, const CopyTo& copy)>;

Outcome<void, Error> CopyOut(int fd, const std::string& path, std::uint64_t bytes, const std::string& target,
                             mode_t mode) {
  Descriptor out(target, O_WRONLY | O_CREAT | O_EXCL, mode);
  if (out.get() < 0) return Failed("cannot write", target);
  std::string chunk(kCopyBytes, '\0');
  while (bytes > 0) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, chunk.size()));
    KS_RETURN_IF_ERROR(ReadExactly(fd, chunk.data(), size, path));
    for (std::string_view left(chunk.data(), size); !left.empty();) {
      const ssize_t written = ::write(out.get(), left.data(), left.size());
      if (written < 0) return Failed("cannot write", target);
      left.remove_prefix(static_cast<std::size_t>(written));
    }
    bytes -= size;
  }
  if (::fsync(out.get()) != 0) return Failed("cannot write", target);
  return {};
}

Outcome<void, Error> ReadArchive(const std::string& path, const Visit& visit) {
  Descriptor file(path, O_RDONLY);
  if (file.get() < 0) return Failed("cannot read", path);
  std::array<char, kTarBlock> block{};
  for (;;) {
    KS_RETURN_IF_ERROR(ReadExactly(file.get(), block.data(), block.size(), path));
    if (std::ranges::all_of(block, [](char c) { return c == '\0'; })) return {};
    const auto entry = ParseTarHeader({block.data(), block.size()});
    if (!entry) return Error(path + " is not a backup: it has something else than files in it, or is damaged");
    const off_t begin = ::lseek(file.get(), 0, SEEK_CUR);
    KS_RETURN_IF_ERROR(visit(*entry, [&](const std::string& target) {
      return CopyOut(file.get(), path, entry->size, target, entry->mode);
    }));
    const auto end = static_cast<std::uint64_t>(begin) + entry->size + TarPadding(entry->size);
    if (begin < 0 || ::lseek(file.get(), static_cast<off_t>(end), SEEK_SET) < 0) return Failed("cannot read", path);
  }
}

bool IsPKIName(std::string_view name) {
  if (!name.starts_with(kPKI)) return false;
  const std::string_view rest = name.substr(kPKI.size());
  return !rest.empty() && rest.find('/') == std::string_view::npos && rest != "." && rest != "..";
}

Error Unknown(const std::string& path, const TarEntry& entry) {
  return Error(path + " is not a backup of Keelson: it holds " + base::GoQuote(entry.name));
}

BackupInfo Info(const std::string& path, const kv::snapshot::Info& snapshot) {
  std::error_code error;
  return {.path = path, .bytes = fs::file_size(path, error), .revision = snapshot.revision, .keys = snapshot.keys};
}

}  // namespace

SnapshotSource SnapshotOf(kv::Store& store) {
  return [&store](const std::string& path) -> Outcome<kv::snapshot::Info, Error> {
    async::IOPool io(1);
    auto writing = kv::snapshot::WriteFile(store, path);
    auto info = asio::co_spawn(io.executor(0), std::move(writing), asio::use_future).get();
    if (!info.ok()) return Error(info.error().message);
    return *info;
  };
}

std::string BackupName(base::Clock::SystemTime time) {
  std::string text = object::FormatTime(Seconds(time));  // 2026-11-17T05:30:00Z
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return "keelson-" + text + ".tar";
}

Outcome<BackupInfo, Error> WriteBackup(const SnapshotSource& snapshot, const std::string& pki_folder,
                                       const std::string& path, base::Clock::SystemTime now) {
  if (FileExists(path)) return Error(path + " is already there: choose another name");
  Temporary snapshot_file(path + ".snapshot"), part(path + ".part");
  KS_TRY(const kv::snapshot::Info info, snapshot(snapshot_file.path));
  Descriptor out(part.path, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (out.get() < 0) return Failed("cannot write", path);
  TarWriter tar(out.get(), path, Seconds(now));
  const std::string about = "keelson " + std::string(kKeelsonVersion) + "\ncreated " +
                            object::FormatTime(Seconds(now)) + "\nrevision " + std::to_string(info.revision) +
                            "\nkeys " + std::to_string(info.keys) + "\n";
  KS_RETURN_IF_ERROR(tar.Add(kAbout, about, 0600));
  KS_RETURN_IF_ERROR(AddPKI(tar, pki_folder));
  KS_RETURN_IF_ERROR(tar.AddFile(kSnapshot, snapshot_file.path, 0600));
  KS_RETURN_IF_ERROR(tar.Finish());
  if (::rename(part.path.c_str(), path.c_str()) != 0) return Failed("cannot write", path);
  part.path.clear();
  return Info(path, info);
}

Outcome<BackupInfo, Error> VerifyBackup(const std::string& path) {
  Temporary copy(path + ".verify");
  std::size_t pki_files = 0;
  KS_RETURN_IF_ERROR(ReadArchive(path, [&](const TarEntry& entry, const CopyTo& extract) -> Outcome<void, Error> {
    if (entry.name == kSnapshot) return extract(copy.path);
    if (IsPKIName(entry.name)) ++pki_files;
    if (entry.name != kAbout && !IsPKIName(entry.name)) return Unknown(path, entry);
    return {};
  }));
  if (!FileExists(copy.path)) return Error(path + " is not a backup: it has no " + std::string(kSnapshot));
  if (pki_files == 0) return Error(path + " has no pki folder");
  const auto info = kv::snapshot::ReadFile(copy.path, nullptr);
  if (!info.ok()) return Error(info.error().message);
  return Info(path, *info);
}

Outcome<BackupInfo, Error> RestoreBackup(const std::string& path, const std::string& data_folder) {
  const std::string store = data_folder + "/store", pki = data_folder + "/pki";
  for (const std::string& taken : {store + "/db", pki}) {
    if (FileExists(taken))
      return Error(taken + " is already there", "restore into a new folder, or move the old one away first");
  }
  KS_TRY(const BackupInfo verified, VerifyBackup(path));
  KS_RETURN_IF_ERROR(MakeDirectories(data_folder, 0700));
  // Under another name until it is whole.
  const std::string incoming = pki + ".restoring";
  std::error_code error;
  fs::remove_all(incoming, error);
  KS_RETURN_IF_ERROR(MakeDirectories(incoming, 0700));
  Temporary snapshot(data_folder + "/restoring.snapshot");
  KS_RETURN_IF_ERROR(ReadArchive(path, [&](const TarEntry& entry, const CopyTo& extract) -> Outcome<void, Error> {
    if (entry.name == kSnapshot) return extract(snapshot.path);
    if (IsPKIName(entry.name)) return extract(incoming + "/" + entry.name.substr(kPKI.size()));
    return {};
  }));
  const auto restored = kv::rocks::Restore(snapshot.path, store);
  if (!restored.ok()) return Error(restored.error().message);
  if (::rename(incoming.c_str(), pki.c_str()) != 0) return Failed("cannot make", pki);
  return BackupInfo{.path = path, .bytes = verified.bytes, .revision = restored->revision, .keys = restored->keys};
}

std::vector<std::string> ListBackups(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename();
    constexpr std::string_view kForm = "keelson-00000000T000000Z.tar";
    const bool named = name.size() == kForm.size() && std::ranges::equal(name, kForm, [](char a, char b) {
                         return b == '0' ? a >= '0' && a <= '9' : a == b;
                       });
    if (named) paths.push_back(at->path());
  }
  std::ranges::sort(paths);
  return paths;
}

std::vector<std::string> PruneBackups(const std::string& folder, std::size_t keep) {
  std::vector<std::string> paths = ListBackups(folder), removed;
  for (std::size_t i = 0; i + keep < paths.size(); ++i) {
    if (::unlink(paths[i].c_str()) == 0) removed.push_back(paths[i]);
  }
  return removed;
}

}  // namespace keelson::app
