// Files that may change while the server runs: subscribers get the new text.
// Thread safety: Add() before the first Look(); Look() from one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace keelson::app {

class FollowedFiles {
 public:
  // `take` gets the text when it differs from `text`; false if it is unusable: that is logged once, and the old text
  // stays in force.
  void Add(std::string path, std::string text, std::function<bool(const std::string& text)> take);
  // Reads the files that changed (size, time, inode), and now and then all of them. Blocks on the
  // disk.
  void Look();

 private:
  static constexpr int kReadAllEvery = 30;  // looks
  struct File {
    std::string path;
    std::string text;
    std::function<bool(const std::string&)> take;
    std::string identity;
    bool failed = false;
  };
  std::vector<File> files_;
  int looks_ = 0;
};

}  // namespace keelson::app
