#include "audit/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/strings.h"
#include "object/time.h"
#include "telemetry/log.h"

namespace keelson::audit {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0600;
constexpr mode_t kFolderMode = 0700;
constexpr std::int64_t kMegabyte = 1024 * 1024;
constexpr std::size_t kStampSize = std::string_view("2026-11-16T01-02-22.200").size();

std::string ErrorText(int error) {
  std::string text = std::strerror(error);
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// Makes the folders of a path; the error is Go's os.MkdirAll's.
Outcome<void, std::string> MakeFolders(const fs::path& folder) {
  if (folder.empty() || folder == folder.parent_path()) return {};
  struct stat found{};
  if (stat(folder.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return {};
    return "mkdir " + folder.string() + ": not a directory";
  }
  KS_RETURN_IF_ERROR(MakeFolders(folder.parent_path()));
  if (mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST)
    return "mkdir " + folder.string() + ": " + ErrorText(errno);
  return {};
}

// Replaces a file by <file>.gz; the file stays when that fails.
bool Compress(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const fs::path packed = file.string() + ".gz";
  const int fd = open(packed.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode);
  if (!in || fd < 0) return false;
  gzFile out = gzdopen(fd, "wb");
  if (out == nullptr) {
    close(fd);
    return false;
  }
  std::vector<char> buffer(std::size_t{256} * 1024);
  bool good = true;
  while (good && in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto got = static_cast<unsigned>(in.gcount());
    good = got == 0 || gzwrite(out, buffer.data(), got) == static_cast<int>(got);
  }
  good = gzclose(out) == Z_OK && good && !in.bad();
  std::error_code ignored;
  fs::remove(good ? file : packed, ignored);
  return good;
}

struct Backup {
  fs::path path;
  std::string stamp;
};

// Rotated files beside `file`, the newest first.
std::vector<Backup> Backups(const fs::path& file) {
  const std::string prefix = file.stem().string() + "-";
  const std::string extension = file.extension().string();
  std::vector<Backup> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(file.parent_path(), error)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (!name.ends_with(extension) || name.size() != prefix.size() + kStampSize + extension.size()) continue;
    found.push_back({entry.path(), name.substr(prefix.size(), kStampSize)});
  }
  std::ranges::sort(found, [](const Backup& a, const Backup& b) { return a.stamp > b.stamp; });
  return found;
}

// 2026-11-16T01-02-22.200, in UTC.
std::string Stamp(std::chrono::system_clock::time_point time) {
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  std::string text = object::FormatTime(millis / 1000);
  text.pop_back();
  std::ranges::replace(text, ':', '-');
  return text + "." + std::to_string(1000 + millis % 1000).substr(1);
}

}  // namespace

Outcome<std::unique_ptr<LogFile>, std::string> LogFile::Open(LogFileOptions options, const base::Clock& clock) {
  if (options.path != "-") options.path = fs::absolute(options.path).lexically_normal().string();
  std::unique_ptr<LogFile> file(new LogFile(std::move(options), clock));
  if (file->options_.path == "-") {
    file->fd_ = STDOUT_FILENO;
    return file;
  }
  if (auto made = MakeFolders(fs::path(file->options_.path).parent_path()); !made.ok())
    return "ensureLogFile: " + made.error();
  if (auto opened = file->OpenFile(); !opened.ok()) return "ensureLogFile: " + opened.error();
  return file;
}

LogFile::~LogFile() {
  if (fd_ > STDOUT_FILENO) close(fd_);
}

Outcome<void, std::string> LogFile::OpenFile() {
  fd_ = open(options_.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kFileMode);
  if (fd_ < 0) return "open " + options_.path + ": " + ErrorText(errno);
  struct stat found{};
  size_ = fstat(fd_, &found) == 0 ? found.st_size : 0;
  return {};
}

std::string LogFile::BackupName() const {
  const fs::path path(options_.path);
  return (path.parent_path() / (path.stem().string() + "-" + Stamp(clock_.Now()) + path.extension().string())).string();
}

Outcome<void, std::string> LogFile::Rotate() {
  close(fd_);
  fd_ = -1;
  const std::string backup = BackupName();
  if (rename(options_.path.c_str(), backup.c_str()) != 0)
    return "can't rename log file: rename " + options_.path + " " + backup + ": " + ErrorText(errno);
  KS_RETURN_IF_ERROR(OpenFile());
  RemoveOld();
  return {};
}

void LogFile::RemoveOld() const {
  if (options_.backups_max <= 0 && options_.days_max <= 0 && !options_.compress) return;
  const auto oldest = Stamp(clock_.Now() - std::chrono::days(options_.days_max));
  std::int64_t kept = 0;
  for (const Backup& backup : Backups(options_.path)) {
    std::error_code error;
    const bool surplus = options_.backups_max > 0 && kept >= options_.backups_max;
    const bool old = options_.days_max > 0 && backup.stamp < oldest;
    if (surplus || old) {
      fs::remove(backup.path, error);
      continue;
    }
    ++kept;
    if (options_.compress && backup.path.extension() != ".gz" && !Compress(backup.path))
      log::Error("Could not compress a rotated audit log", "file", backup.path.string());
  }
}

Outcome<void, std::string> LogFile::Begin(std::size_t size) {
  if (!rotates() || options_.path == "-") return {};
  const std::int64_t max = options_.megabytes_max * kMegabyte;
  const auto wanted = static_cast<std::int64_t>(size);
  if (wanted > max)
    return "write length " + std::to_string(wanted) + " exceeds maximum file size " + std::to_string(max);
  if (fd_ < 0) KS_RETURN_IF_ERROR(OpenFile());
  if (size_ + wanted > max) return Rotate();
  return {};
}

Outcome<void, std::string> LogFile::Write(std::string_view bytes) {
  if (fd_ < 0) KS_RETURN_IF_ERROR(OpenFile());
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return "write " + options_.path + ": " + ErrorText(errno);
    size_ += written;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace keelson::audit
