#include "app/data_dir.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/files.h"
#include "base/strings.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

// Rights that others have to the folder or to something in it, from before or from a copy, are taken away.
Outcome<void, Error> TakeFromOthers(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return Error("cannot use data folder " + path + ": " + ::strerror(errno));
  if ((info.st_mode & S_ISVTX) != 0) {
    return Error("cannot use data folder " + path + ": every user may write to it; name a folder of the server's own");
  }
  // Other users cannot enter a folder of mode 0700; certificates in it may be readable.
  if ((info.st_mode & kOthers) == 0) return {};
  const auto mend = [&](const std::string& name, mode_t mode) -> Outcome<void, Error> {
    if ((mode & kOthers) == 0) return {};
    if (::chmod(name.c_str(), mode & 07777 & ~kOthers) != 0) {
      return Error("data folder " + path + " is open to other users, and " + name +
                   " cannot be closed to them: " + ::strerror(errno));
    }
    return {};
  };
  KS_RETURN_IF_ERROR(mend(path, info.st_mode));
  std::error_code failed;
  for (auto at = std::filesystem::recursive_directory_iterator(path, failed);
       !failed && at != std::filesystem::recursive_directory_iterator(); at.increment(failed)) {
    const std::string name = at->path();
    if (::lstat(name.c_str(), &info) != 0 || S_ISLNK(info.st_mode)) continue;  // gone meanwhile, or not ours to change
    KS_RETURN_IF_ERROR(mend(name, info.st_mode));
  }
  if (failed) return Error("cannot read data folder " + path + ": " + failed.message());
  log::Warning("Data folder was open to other users; their rights were taken away", "path", path);
  return {};
}

// A target of `keelson migrate` or `keelson store restore` that was not named FOLDER/store: a server would begin with
// an empty store beside it.
Outcome<void, Error> RefuseBareStore(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path + "/db", ignored) || std::filesystem::exists(path + "/store", ignored))
    return {};
  return Error("data folder " + path + " is itself a store, of migrate or store restore",
               "its place is the folder store in a data folder: rename it to FOLDER/store, then --data-dir=FOLDER");
}

}  // namespace

std::string DataDir::Default() {
  const char* const data_home = std::getenv("XDG_DATA_HOME");
  if (data_home != nullptr && data_home[0] == '/') return std::string(data_home) + "/keelson";
  const char* const home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.local/share/keelson";
  return "/var/lib/keelson";
}

std::string DataDir::Absolute(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(folder, error);
  if (std::ranges::find(path, "..") == path.end()) return path.lexically_normal();
  const std::filesystem::path resolved = std::filesystem::weakly_canonical(path, error);
  return error ? path : resolved;
}

Outcome<DataDir, Error> DataDir::Open(const std::string& given) {
  if (given == ":memory:") {
    const char* const parent = std::getenv("TMPDIR");
    std::string folder = std::string(parent != nullptr && parent[0] == '/' ? parent : "/tmp") + "/keelson-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) return Error("cannot make folder " + folder + ": " + ::strerror(errno));
    return DataDir(std::move(folder), -1, true);
  }
  const std::string path = Absolute(given);
  KS_RETURN_IF_ERROR(RefuseBareStore(path));
  KS_RETURN_IF_ERROR(MakeDirectories(path, kFolderMode));
  KS_RETURN_IF_ERROR(TakeFromOthers(path));
  const std::string lock_path = path + "/lock";
  const int fd = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return Error("cannot use data folder " + path + ": " + ::strerror(errno));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int code = errno;
    char holder[32];
    const ssize_t got = ::read(fd, holder, sizeof holder);
    ::close(fd);
    if (code != EWOULDBLOCK) return Error("cannot lock data folder " + path + ": " + ::strerror(code));
    const std::string pid(base::Trim(std::string_view(holder, got > 0 ? static_cast<std::size_t>(got) : 0)));
    return Error("data folder " + path + " is in use by " + (pid.empty() ? "another process" : "process " + pid),
                 "another server runs on it: stop that one first, or choose another folder with --data-dir");
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // Only a hint for the message above: the lock itself is what counts.
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    const int code = errno;
    ::close(fd);
    return Error("cannot write to data folder " + path + ": " + ::strerror(code));
  }
  return DataDir(path, fd, false);
}

DataDir::DataDir(DataDir&& other) noexcept
    : path_(std::move(other.path_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      in_memory_(std::exchange(other.in_memory_, false)) {}

DataDir::~DataDir() {
  if (in_memory_ && !path_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

}  // namespace keelson::app
