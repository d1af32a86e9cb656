#include "server/path_mux.h"

#include <algorithm>

#include "base/check.h"

namespace keelson::server {

void PathMux::Handle(std::string path, endpoints::Handler handler) {
  exact_[std::move(path)] = {std::move(handler), true};
}

void PathMux::Unlisted(std::string path, endpoints::Handler handler) {
  exact_[std::move(path)] = {std::move(handler), false};
}

void PathMux::HandlePrefix(std::string prefix, endpoints::Handler handler) {
  KS_CHECK(prefix.ends_with('/'));
  prefixes_[std::move(prefix)] = {std::move(handler), true};
}

void PathMux::UnlistedPrefix(std::string prefix, endpoints::Handler handler) {
  KS_CHECK(prefix.ends_with('/'));
  prefixes_[std::move(prefix)] = {std::move(handler), false};
}

const endpoints::Handler* PathMux::Find(std::string_view path) const {
  if (const auto found = exact_.find(path); found != exact_.end()) return &found->second.handler;
  const endpoints::Handler* best = nullptr;
  std::size_t best_size = 0;
  for (const auto& [prefix, entry] : prefixes_) {
    if (path.starts_with(prefix) && prefix.size() > best_size) {
      best = &entry.handler;
      best_size = prefix.size();
    }
  }
  return best;
}

std::vector<std::string> PathMux::ListedPaths() const {
  std::vector<std::string> paths;
  for (const auto& [path, entry] : exact_) {
    if (entry.listed) paths.push_back(path);
  }
  for (const auto& [prefix, entry] : prefixes_) {
    if (entry.listed) paths.push_back(prefix);
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace keelson::server
