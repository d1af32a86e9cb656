// One server of the chain (aggregator → kube-apiserver → apiextensions → not found): its API groups, its other paths,
// its post-start hooks. Only the first server's handler chain runs; a request that a server has no path for goes on to
// its delegate. Thread safety: installation before PrepareRun(); serving from any thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "endpoints/api_group_version.h"
#include "endpoints/exchange.h"
#include "server/health.h"
#include "server/path_mux.h"

namespace keelson::server {

// One API group to install: its versions, best first.
struct APIGroupInfo {
  std::string group;
  std::vector<std::shared_ptr<endpoints::APIGroupVersion>> versions;
};

// Started once the listener serves; `done` is called when what it does for readiness is done. Each is a readyz check.
struct PostStartHook {
  std::string name;
  std::function<Awaitable<void>()> run;
};

class GenericAPIServer {
 public:
  explicit GenericAPIServer(std::string name, std::shared_ptr<GenericAPIServer> delegate = nullptr);

  const std::string& name() const { return name_; }
  void InstallAPIGroup(APIGroupInfo group);
  const std::vector<APIGroupInfo>& groups() const { return groups_; }
  PathMux& mux() { return mux_; }
  void AddPostStartHook(std::string name, std::function<Awaitable<void>()> run);
  // Runs before the end of the chain; nothing if the request is not for it. For dynamic resources, which have no routes
  // here.
  using DynamicHandler = std::function<Awaitable<std::optional<http::Response>>(endpoints::ExchangePtr)>;
  void SetDynamicHandler(DynamicHandler handler) { dynamic_ = std::move(handler); }
  // Runs before everything else of this server, for requests that another server must serve (the aggregator). Called
  // for every request from any thread; must be quick.
  using Preemption = std::function<std::optional<endpoints::Handler>(const endpoints::Exchange& exchange)>;
  void SetPreemption(Preemption preemption) { preemption_ = std::move(preemption); }
  // Paths of / beside the installed ones, for dynamic groups (upstream's ListedPathProvider). Called for each request
  // of /, from any thread.
  using ListedPathProvider = std::function<std::vector<std::string>()>;
  void SetListedPathProvider(ListedPathProvider provider) { listed_paths_ = std::move(provider); }
  // Its own hooks and its delegates'.
  std::vector<PostStartHook> AllPostStartHooks() const;
  std::vector<std::string> AllListedPaths() const;  // sorted, each once; its delegates', too
  std::vector<const APIGroupInfo*> AllGroups() const;

  // Serves the request here or in a delegate; 404 at the end of the chain.
  Awaitable<http::Response> Serve(endpoints::ExchangePtr exchange) const;

 private:
  static Awaitable<http::Response> ServeBy(endpoints::Handler handler, endpoints::ExchangePtr exchange);
  Awaitable<http::Response> ServeDynamic(endpoints::ExchangePtr exchange) const;
  Awaitable<http::Response> ServeByDelegate(endpoints::ExchangePtr exchange) const;
  const endpoints::APIGroupVersion* FindGroupVersion(std::string_view path, bool& known_group) const;

  std::string name_;
  std::shared_ptr<GenericAPIServer> delegate_;
  std::vector<APIGroupInfo> groups_;
  PathMux mux_;
  DynamicHandler dynamic_;
  Preemption preemption_;
  ListedPathProvider listed_paths_;
  std::vector<PostStartHook> hooks_;
};

}  // namespace keelson::server
