// Files that may change while the server runs: subscribers get the new text.
// Thread safety: Add() before the first Look(); Look() from one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace keelson::app {

enum class Taken : std::uint8_t {
  kLoaded,
  kRetry,    // unusable now: offered again at every look, since it may depend on other files
  kRefused,  // unusable as it is: offered again when it changes
};

class FollowedFiles {
 public:
  using Take = std::function<Taken(const std::string& text)>;
  // `take` gets the text when it differs from `text`. Unusable text is logged once, and the old one stays in force.
  void Add(std::string path, std::string text, Take take);
  // Reads the files that changed (size, time, inode), and now and then all of them. Blocks on the
  // disk.
  void Look();

 private:
  static constexpr int kReadAllEvery = 30;  // looks
  struct File {
    std::string path;
    std::string text;
    Take take;
    std::string identity;
    bool failed = false;
  };
  std::vector<File> files_;
  int looks_ = 0;
};

}  // namespace keelson::app
