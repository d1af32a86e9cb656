#include "server/generic_api_server.h"

#include <algorithm>

#include "endpoints/page.h"
#include "endpoints/responses.h"

namespace keelson::server {

GenericAPIServer::GenericAPIServer(std::string name, std::shared_ptr<GenericAPIServer> delegate)
    : name_(std::move(name)), delegate_(std::move(delegate)) {}

void GenericAPIServer::InstallAPIGroup(APIGroupInfo group) { groups_.push_back(std::move(group)); }

void GenericAPIServer::AddPostStartHook(std::string name, std::function<Awaitable<void>()> run) {
  hooks_.push_back({std::move(name), std::move(run)});
}

std::vector<PostStartHook> GenericAPIServer::AllPostStartHooks() const {
  std::vector<PostStartHook> hooks = delegate_ ? delegate_->AllPostStartHooks() : std::vector<PostStartHook>();
  hooks.insert(hooks.end(), hooks_.begin(), hooks_.end());
  return hooks;
}

std::vector<std::string> GenericAPIServer::AllListedPaths() const {
  std::vector<std::string> paths = delegate_ ? delegate_->AllListedPaths() : std::vector<std::string>();
  for (auto& path : mux_.ListedPaths()) paths.push_back(std::move(path));
  for (const auto& group : groups_) {
    if (!group.group.empty()) paths.push_back("/apis/" + group.group);
    for (const auto& version : group.versions) paths.push_back(version->prefix());
  }
  if (listed_paths_) {
    for (auto& path : listed_paths_()) paths.push_back(std::move(path));
  }
  std::ranges::sort(paths);
  const auto repeats = std::ranges::unique(paths);
  paths.erase(repeats.begin(), repeats.end());
  return paths;
}

std::vector<const APIGroupInfo*> GenericAPIServer::AllGroups() const {
  std::vector<const APIGroupInfo*> groups;
  for (const auto& group : groups_) groups.push_back(&group);
  if (delegate_) {
    const auto more = delegate_->AllGroups();
    groups.insert(groups.end(), more.begin(), more.end());
  }
  return groups;
}

// Whether the path is /apis/<group> (/api of the core group) or something in it.
static bool IsBelow(std::string_view path, std::string_view group) {
  const std::string_view root = group.empty() ? "/api" : "/apis/";
  if (!path.starts_with(root)) return false;
  path.remove_prefix(root.size());
  if (!path.starts_with(group)) return false;
  path.remove_prefix(group.size());
  return path.empty() || path.front() == '/';
}

const endpoints::APIGroupVersion* GenericAPIServer::FindGroupVersion(std::string_view path, bool& known_group) const {
  for (const auto& group : groups_) {
    if (!IsBelow(path, group.group)) continue;
    known_group = true;
    for (const auto& version : group.versions) {
      const std::string& prefix = version->prefix();
      if (path.starts_with(prefix) && path.size() > prefix.size() && path[prefix.size()] == '/') return version.get();
    }
  }
  return nullptr;
}

Awaitable<http::Response> GenericAPIServer::Serve(endpoints::ExchangePtr exchange) const {
  const std::string_view path = exchange->http.path;
  bool known_group = false;
  if (preemption_) {
    if (auto handler = preemption_(*exchange)) return ServeBy(*std::move(handler), std::move(exchange));
  }
  // Discovery documents of a group version are at its prefix (with or without a slash); below it are its
  // resources.
  if (const auto* handler = mux_.Find(path)) return (*handler)(std::move(exchange));
  if (const auto* version = FindGroupVersion(path, known_group)) return version->Handle(std::move(exchange));
  if (known_group) return endpoints::Immediately(endpoints::NoRoute(*exchange));
  if (dynamic_) return ServeDynamic(std::move(exchange));
  return ServeByDelegate(std::move(exchange));
}

// The handler may be gone from where it was found before the request has ended.
Awaitable<http::Response> GenericAPIServer::ServeBy(endpoints::Handler handler, endpoints::ExchangePtr exchange) {
  co_return co_await handler(std::move(exchange));
}

Awaitable<http::Response> GenericAPIServer::ServeDynamic(endpoints::ExchangePtr exchange) const {
  if (auto response = co_await dynamic_(exchange)) co_return *std::move(response);
  co_return co_await ServeByDelegate(std::move(exchange));
}

Awaitable<http::Response> GenericAPIServer::ServeByDelegate(endpoints::ExchangePtr exchange) const {
  if (delegate_) return delegate_->Serve(std::move(exchange));
  return endpoints::NotFound(std::move(exchange));
}

}  // namespace keelson::server
