// Non-resource paths: exact ones, and prefixes of which the most specific wins (upstream's PathRecorderMux).
// Thread safety: registration before serving, or through a new mux; Find() from any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "endpoints/exchange.h"

namespace keelson::server {

class PathMux {
 public:
  void Handle(std::string path, endpoints::Handler handler);            // exact
  void HandlePrefix(std::string prefix, endpoints::Handler handler);    // REQUIRES: ends with '/'
  void Unlisted(std::string path, endpoints::Handler handler);          // exact, not shown in the index
  void UnlistedPrefix(std::string prefix, endpoints::Handler handler);  // REQUIRES: ends with '/'
  const endpoints::Handler* Find(std::string_view path) const;          // nullptr: not here
  std::vector<std::string> ListedPaths() const;                         // by name

 private:
  struct Entry {
    endpoints::Handler handler;
    bool listed;
  };
  std::map<std::string, Entry, std::less<>> exact_;
  std::map<std::string, Entry, std::less<>> prefixes_;
};

}  // namespace keelson::server
