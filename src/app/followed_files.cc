#include "app/followed_files.h"

#include <utility>

#include "app/files.h"
#include "telemetry/log.h"

namespace keelson::app {

void FollowedFiles::Add(std::string path, std::string text, Take take) {
  std::string identity = FileIdentity(path);
  files_.push_back({std::move(path), std::move(text), std::move(take), std::move(identity)});
}

void FollowedFiles::Look() {
  const bool all = ++looks_ % kReadAllEvery == 0;
  for (File& file : files_) {
    std::string identity = FileIdentity(file.path);
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
