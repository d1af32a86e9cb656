#include "app/followed_files.h"

#include <sys/stat.h>

#include <utility>

#include "app/files.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

std::string IdentityOf(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return "absent";
  return std::to_string(info.st_size) + "/" + std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec) + "/" + std::to_string(info.st_dev) + ":" + std::to_string(info.st_ino);
}

}  // namespace

void FollowedFiles::Add(std::string path, std::string text, Take take) {
  std::string identity = IdentityOf(path);
  files_.push_back({std::move(path), std::move(text), std::move(take), std::move(identity)});
}

void FollowedFiles::Look() {
  const bool all = ++looks_ % kReadAllEvery == 0;
  for (File& file : files_) {
    std::string identity = IdentityOf(file.path);
    if (identity == file.identity && !all && !file.failed) continue;
    file.identity = std::move(identity);
    auto read = ReadSmallFile(file.path);
    const bool changed = read.ok() && *read != file.text;
    if (read.ok() && !changed) {
      file.failed = false;
      continue;
    }
    const Taken taken = read.ok() ? file.take(*read) : Taken::kRetry;
    if (taken != Taken::kRetry) file.text = *read;
    if (taken == Taken::kLoaded) {
      file.failed = false;
      log::Info("Loaded a changed file", "path", file.path);
      continue;
    }
    if (!std::exchange(file.failed, true)) {
      log::Error("Could not load a changed file; what was loaded before stays in force", "path", file.path, "err",
                 read.ok() ? std::string("it holds nothing usable") : read.error().message());
    }
    if (taken == Taken::kRefused) file.failed = false;
  }
}

}  // namespace keelson::app
