// The text of a small file that others may replace while the server runs. Looked at again at most once a second.
// Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "base/outcome.h"

namespace keelson::webhook {

class FileText {
 public:
  static constexpr std::chrono::seconds kLookInterval{1};

  explicit FileText(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  // The latest text that could be read; the error only while none ever could.
  Outcome<std::string, std::string> Get();

 private:
  const std::string path_;
  std::mutex mutex_;
  bool read_ = false;
  std::string text_;
  std::string identity_;  // inode, size, time
  std::chrono::steady_clock::time_point next_look_{};
};

}  // namespace keelson::webhook
