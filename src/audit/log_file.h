// The audit log's file, rotated by size (upstream's lumberjack): the full file is renamed to
// <name>-<time><extension>, old ones are removed by number and age and may be compressed.
// Thread safety: one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/outcome.h"

namespace keelson::audit {

struct LogFileOptions {
  std::string path;                // "-": standard output
  std::int64_t megabytes_max = 0;  // 0: no rotation
  std::int64_t days_max = 0;       // age of rotated files; 0: any
  std::int64_t backups_max = 0;    // number of rotated files; 0: any
  bool compress = false;           // rotated files, with gzip
};

class LogFile {
 public:
  // Makes the file (0600) and its folders (0700). The error begins with "ensureLogFile: ".
  static Outcome<std::unique_ptr<LogFile>, std::string> Open(LogFileOptions options,
                                                             const base::Clock& clock = base::Clock::Real());
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  bool rotates() const { return options_.megabytes_max > 0; }
  // Says that `size` bytes come next, which stay in one file.
  Outcome<void, std::string> Begin(std::size_t size);
  Outcome<void, std::string> Write(std::string_view bytes);

 private:
  LogFile(LogFileOptions options, const base::Clock& clock) : options_(std::move(options)), clock_(clock) {}
  Outcome<void, std::string> OpenFile();
  Outcome<void, std::string> Rotate();
  void RemoveOld() const;
  std::string BackupName() const;

  const LogFileOptions options_;
  const base::Clock& clock_;
  int fd_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace keelson::audit
