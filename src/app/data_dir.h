// The folder of the embedded default: the store, pki/ and admin.kubeconfig. Held by one process at a time.
#pragma once

#include <string>

#include "app/error.h"
#include "base/outcome.h"

namespace keelson::app {

class DataDir {
 public:
  // Makes the folder (mode 0700) where it is missing. One that is there and open to other users is closed to them, with
  // everything in it and a warning. Then takes its lock at once or not at all:
  // "data folder X is in use by process 123". `given` ":memory:" gives an empty temporary folder that is removed at the
  // end.
  static Outcome<DataDir, Error> Open(const std::string& given);

  DataDir(DataDir&& other) noexcept;
  DataDir& operator=(DataDir&&) = delete;
  ~DataDir();

  const std::string& path() const { return path_; }
  bool in_memory() const { return in_memory_; }
  std::string store_path() const { return path_ + "/store"; }
  std::string pki_path() const { return path_ + "/pki"; }
  std::string kubeconfig_path() const { return path_ + "/admin.kubeconfig"; }

  // $XDG_DATA_HOME/keelson, else $HOME/.local/share/keelson, else /var/lib/keelson.
  static std::string Default();
  // Of use in another working directory, without "." and "..". Links are followed only where ".." has to be resolved.
  static std::string Absolute(const std::string& folder);

 private:
  DataDir(std::string path, int lock_fd, bool in_memory)
      : path_(std::move(path)), lock_fd_(lock_fd), in_memory_(in_memory) {}

  std::string path_;
  int lock_fd_;
  bool in_memory_;
};

}  // namespace keelson::app
