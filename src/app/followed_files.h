// Files that may change while the server runs: who wants to know gets the new text.
// Thread safety: Add() before the first Look(); Look() from one thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace keelson::app {

class FollowedFiles {
 public:
  // `take` gets the text when it has become another one than `text`; false when it cannot be used: that is told in the
  // log once, and what was stays in force.
  void Add(std::string path, std::string text, std::function<bool(const std::string& text)> take);
  // Reads what looks changed (size, time, inode), and everything once in a while whatever it looks like. Blocks on the
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
