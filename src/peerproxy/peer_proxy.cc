#include "peerproxy/peer_proxy.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <map>
#include <mutex>
#include <set>

#include "async/deadlines.h"
#include "async/event.h"
#include "base/atomic_ref.h"
#include "base/hash.h"
#include "codec/json.h"
#include "endpoints/auth_proxy.h"
#include "endpoints/upgrade_aware_proxy.h"
#include "peerproxy/discovery_merge.h"
#include "peerproxy/exclusions.h"
#include "telemetry/log.h"

namespace keelson::peerproxy {
namespace {

using Time = base::Clock::SteadyTime;

constexpr std::string_view kAccept =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer,"
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
constexpr std::string_view kAPIServerUser = "system:apiserver";

struct Metrics {
  explicit Metrics(telemetry::MetricsRegistry& registry)
      : rerouted(registry.Counters(
            {.name = "apiserver_rerouted_request_total",
             .help = "Total number of requests that were proxied to a peer kube-apiserver because the local apiserver "
                     "was not capable of serving it, broken down by 'group', 'version', and 'resource' indicating the "
                     "GVR of the request. If all three are empty (\"\"), the request is a discovery request.",
             .stability = telemetry::Stability::kAlpha,
             .labels = {"code", "group", "version", "resource"}})),
        errors(registry.Counters(
            {.name = "apiserver_peer_proxy_errors_total",
             .help = "Total number of errors encountered while proxying requests to a peer kube apiserver",
             .stability = telemetry::Stability::kAlpha,
             .labels = {"type", "group", "version", "resource"}})),
        sync_errors(registry.Counters({.name = "apiserver_peer_discovery_sync_errors_total",
                                       .help = "Total number of errors encountered while syncing discovery "
                                               "information from a peer kube-apiserver",
                                       .stability = telemetry::Stability::kAlpha,
                                       .labels = {"type"}})) {}
  telemetry::CounterVec& rerouted;
  telemetry::CounterVec& errors;
  telemetry::CounterVec& sync_errors;
};

std::string KeyOf(std::string_view group, std::string_view version, std::string_view resource) {
  std::string key;
  key.reserve(group.size() + version.size() + resource.size() + 2);
  key.append(group).append("/").append(version).append("/").append(resource);
  return key;
}

// A resource of peers: which of them serve it.
struct Route {
  GroupVersionResource resource;
  std::vector<std::string> server_ids;
};
struct Routes : base::RefCounted {
  base::StringMap<std::shared_ptr<const Route>> by_resource;
};

proxy::Location LocationOf(const net::HostPort& endpoint, std::string path) {
  proxy::Location location;
  location.scheme = "https";
  location.host = endpoint.host;
  location.port = endpoint.port;
  location.path = std::move(path);
  return location;
}

}  // namespace

struct PeerProxy::Impl : std::enable_shared_from_this<Impl> {
  explicit Impl(PeerProxyOptions given) : options(std::move(given)), metrics(*options.metrics) {}

  const PeerProxyOptions options;
  Metrics metrics;
  std::atomic<bool> synced{false};
  std::atomic<bool> stopping{false};
  std::atomic<bool> any_route{false};
  base::AtomicRef<const Routes> routes;
  async::Event wake;
  std::future<void> done;

  mutable std::mutex mutex;
  std::shared_ptr<proxy::Transport> transport;
  std::set<std::string> local;                // KeyOf() of what this server serves
  std::map<std::string, std::string> leases;  // ID of a peer → holder identity
  std::map<std::string, PeerDocumentPtr> documents;
  Exclusions exclusions;
  std::uint64_t generation = 1;
  std::optional<Time> sync_at;  // when the documents are fetched next
  int retries = 0;

  Awaitable<Outcome<http::SharedBytes, std::string>> Fetch(net::HostPort endpoint, std::string path) const;
  Awaitable<Outcome<void, std::string>> FetchAll(std::string server_id, std::shared_ptr<PeerDocument> into) const;
  Awaitable<void> Sync();
  static Awaitable<void> Run(std::shared_ptr<Impl> self);
  static Awaitable<http::Response> Forward(std::shared_ptr<Impl> self, std::shared_ptr<const Route> route,
                                           endpoints::ExchangePtr exchange);
  void Publish();                 // REQUIRES: mutex held.
  void SyncSoon();                // REQUIRES: mutex held.
  std::optional<Time> NextDue();  // REQUIRES: mutex held.
};

void PeerProxy::Impl::SyncSoon() {
  retries = 0;
  sync_at = base::Clock::Real().Monotonic();
  wake.Set();
}

std::optional<Time> PeerProxy::Impl::NextDue() {
  const auto expiry = exclusions.NextExpiry();
  if (!sync_at) return expiry;
  return expiry ? std::min(*sync_at, *expiry) : *sync_at;
}

// Publishes the resources that peers serve and this server does not, without the excluded group versions.
void PeerProxy::Impl::Publish() {
  std::map<std::string, Route> found;
  for (const auto& [id, document] : documents) {
    for (const GroupVersionResource& resource : document->resources()) {
      std::string key = KeyOf(resource.group, resource.version, resource.resource);
      if (local.contains(key) || exclusions.Contains(resource.group, resource.version)) continue;
      Route& route = found[std::move(key)];
      route.resource = resource;
      if (route.server_ids.empty() || route.server_ids.back() != id) route.server_ids.push_back(id);
    }
  }
  auto next = base::MakeRef<Routes>();
  for (auto& [key, route] : found) next->by_resource.emplace(key, std::make_shared<const Route>(std::move(route)));
  any_route = !next->by_resource.empty();
  routes.Store(base::Ref<const Routes>(next));
  ++generation;
}

Awaitable<Outcome<http::SharedBytes, std::string>> PeerProxy::Impl::Fetch(net::HostPort endpoint,
                                                                          std::string path) const {
  std::shared_ptr<proxy::Transport> held;
  {
    std::lock_guard lock(mutex);
    held = transport;
  }
  const auto location = LocationOf(endpoint, std::move(path));
  http::ClientRequest request;
  request.headers.Set("Host", location.Authority());
  request.headers.Add("Accept", kAccept);
  request.headers.Add(kPeerProxiedHeader, "true");
  endpoints::SetAuthProxyHeaders(
      request.headers,
      {.user = std::string(kAPIServerUser), .uid = std::string(kAPIServerUser), .groups = {"system:authenticated"}});
  request.deadline = std::chrono::steady_clock::now() + kFetchTimeout;
  auto answer = co_await held->Do(location, std::move(request));
  const int status = answer.ok() ? answer->status : 503;
  metrics.rerouted.With({std::to_string(status), "", "", ""}).Inc();
  if (!answer.ok()) co_return endpoints::RequestError("GET", location, answer.error());
  if (status != 200) co_return "discovery request failed with status: " + std::to_string(status);
  auto body = co_await answer->body->ReadAll(kDocumentBytesMax);
  if (!body.ok()) co_return std::string("discovery response was cut off or too large");
  co_return *std::move(body);
}

Awaitable<Outcome<void, std::string>> PeerProxy::Impl::FetchAll(std::string server_id,
                                                                std::shared_ptr<PeerDocument> into) const {
  auto endpoint = co_await options.find_endpoint(server_id);
  if (!endpoint.ok()) {
    metrics.sync_errors.With({"hostport_resolution"}).Inc();
    co_return "failed to get host port info from identity lease for server " + server_id + ": " + endpoint.error();
  }
  Outcome<void, std::string> result;
  for (const char* const path : {"/api", "/apis"}) {
    auto text = co_await Fetch(*endpoint, path);
    auto added = text.ok() ? into->Add(text->view()) : Outcome<void, std::string>(text.error());
    if (!added.ok()) metrics.sync_errors.With({"fetch_discovery"}).Inc();
    if (!added.ok()) result = added;
  }
  co_return result;
}

// Fetches the documents of all peers anew. A peer that does not answer has none until it does.
Awaitable<void> PeerProxy::Impl::Sync() {
  std::vector<std::string> ids;
  {
    std::lock_guard lock(mutex);
    for (const auto& [id, holder] : leases) ids.push_back(id);
  }
  std::map<std::string, PeerDocumentPtr> fetched;
  std::string error;
  for (const std::string& id : ids) {
    if (stopping) co_return;
    auto document = std::make_shared<PeerDocument>();
    auto complete = co_await FetchAll(id, document);
    if (!complete.ok()) error = complete.error();
    if (!document->empty()) fetched.emplace(id, std::move(document));
  }
  std::lock_guard lock(mutex);
  documents = std::move(fetched);
  Publish();
  if (sync_at) co_return;  // a lease changed meanwhile
  if (error.empty()) {
    retries = 0;
  } else if (retries < kRetriesMax) {
    log::Info("Error syncing discovery for peer leases", "retry", retries, "err", error);
    const auto wait = std::min<std::chrono::milliseconds>(kRetryFirst * (1LL << std::min(retries, 30)), kRetryLongest);
    ++retries;
    sync_at = base::Clock::Real().Monotonic() + wait;
  } else {
    log::Error("Peer discovery is given up until an identity lease changes", "err", error);
  }
}

Awaitable<void> PeerProxy::Impl::Run(std::shared_ptr<Impl> self) {
  while (!self->stopping) {
    bool sync = false;
    std::optional<Time> due;
    {
      std::lock_guard lock(self->mutex);
      const Time now = base::Clock::Real().Monotonic();
      if (self->exclusions.Expire(now)) self->Publish();
      sync = self->sync_at && *self->sync_at <= now;
      if (sync) self->sync_at.reset();
      due = self->NextDue();
    }
    if (sync) {
      co_await self->Sync();
      continue;
    }
    async::Deadlines::Entry timer;
    if (due) timer = async::Deadlines::Global().Add(*due, [self] { self->wake.Set(); });
    co_await self->wake.Wait();
    self->wake.Reset();
  }
}

Awaitable<http::Response> PeerProxy::Impl::Forward(std::shared_ptr<Impl> self, std::shared_ptr<const Route> route,
                                                   endpoints::ExchangePtr exchange) {
  const GroupVersionResource& resource = route->resource;
  std::vector<std::string> ids = route->server_ids;
  std::optional<net::HostPort> endpoint;
  std::string error;
  while (!endpoint && !ids.empty()) {  // a peer at random, of those that can be found
    const auto chosen = static_cast<std::ptrdiff_t>(self->options.random->Below(ids.size()));
    auto found = co_await self->options.find_endpoint(ids[static_cast<std::size_t>(chosen)]);
    ids.erase(ids.begin() + chosen);
    if (found.ok()) endpoint = *std::move(found);
    if (!found.ok()) error = found.error();
  }
  if (!endpoint) {
    self->metrics.errors.With({"endpoint_resolution", resource.group, resource.version, resource.resource}).Inc();
    log::Error("No address of a peer that serves the resource", "resource",
               KeyOf(resource.group, resource.version, resource.resource), "err", error);
    co_return endpoints::NoServer(*exchange, "Error getting ip and port info of the remote server while proxying");
  }
  http::Headers& headers = exchange->http.headers;
  if (const auto& user = exchange->context.user)
    endpoints::SetAuthProxyHeaders(
        headers, {.user = user->name, .uid = user->uid, .groups = user->groups, .extra = user->extra});
  headers.Set("Audit-Id", exchange->context.audit_id);
  headers.Set(kPeerProxiedHeader, "true");
  endpoints::ProxyOptions proxy;
  proxy.location = LocationOf(*endpoint, exchange->http.path);
  proxy.location.raw_query = endpoints::EncodedQuery(exchange->http.raw_query);
  proxy.wrap_transport = true;
  proxy.aggregated = true;
  {
    std::lock_guard lock(self->mutex);
    proxy.transport = self->transport;
  }
  log::V(3).Info("Proxying a request to a peer", "path", exchange->http.path, "peer", proxy.location.Authority());
  auto response = co_await endpoints::ServeUpgradeAware(std::move(proxy), std::move(exchange));
  self->metrics.rerouted.With({std::to_string(response.status), resource.group, resource.version, resource.resource})
      .Inc();
  co_return response;
}

PeerProxy::PeerProxy(PeerProxyOptions options) : impl_(std::make_shared<Impl>(std::move(options))) {}

PeerProxy::~PeerProxy() { Stop(); }

void PeerProxy::SetTLS(std::shared_ptr<net::TLSClientContext> tls) {
  proxy::TransportOptions options;
  options.tls = [shared = std::move(tls)] { return shared; };
  options.server_name = kServerName;
  options.dialer = impl_->options.dialer;
  auto transport = std::make_shared<proxy::Transport>(*impl_->options.io, std::move(options));
  std::lock_guard lock(impl_->mutex);
  impl_->transport = std::move(transport);
}

void PeerProxy::SetLocal(std::vector<GroupVersionResource> resources) {
  std::lock_guard lock(impl_->mutex);
  impl_->local.clear();
  for (const auto& resource : resources)
    impl_->local.insert(KeyOf(resource.group, resource.version, resource.resource));
  impl_->Publish();
}

void PeerProxy::OnLeases(std::vector<LeaseChange> changes) {
  std::lock_guard lock(impl_->mutex);
  bool changed = false;
  for (LeaseChange& change : changes) {
    if (change.name == impl_->options.server_id) continue;
    if (!change.holder) {
      changed = impl_->leases.erase(change.name) > 0 || changed;
      continue;
    }
    const auto known = impl_->leases.find(change.name);
    if (known == impl_->leases.end() && impl_->leases.size() >= kPeersMax) {
      log::Warning("Too many API server identity leases: one is ignored", "lease", change.name, "max", kPeersMax);
      continue;
    }
    if (known != impl_->leases.end() && known->second == *change.holder) continue;
    impl_->leases.insert_or_assign(change.name, *std::move(change.holder));
    changed = true;
  }
  if (changed) impl_->SyncSoon();
}

void PeerProxy::OnExclusions(std::vector<ExclusionChange> changes) {
  std::lock_guard lock(impl_->mutex);
  const Time now = base::Clock::Real().Monotonic();
  bool changed = false;
  for (ExclusionChange& change : changes)
    changed = impl_->exclusions.Set(change.object, std::move(change.versions), now) || changed;
  if (!changed) return;
  impl_->Publish();
  impl_->wake.Set();  // the next expiry may be another one
}

void PeerProxy::Start() {
  impl_->done = boost::asio::co_spawn(impl_->options.io->Next(), Impl::Run(impl_), boost::asio::use_future);
}

void PeerProxy::FinishSync() { impl_->synced = true; }

void PeerProxy::Stop() {
  impl_->stopping = true;
  impl_->wake.Set();
  if (impl_->done.valid()) impl_->done.wait();
  impl_->done = {};
}

std::optional<endpoints::Handler> PeerProxy::Find(const endpoints::Exchange& exchange) const {
  if (!impl_->any_route.load(std::memory_order_relaxed) || !impl_->synced.load(std::memory_order_relaxed))
    return std::nullopt;
  const request::RequestInfo& info = exchange.context.info;
  if (!info.is_resource_request || exchange.http.headers.Get(kPeerProxiedHeader) == "true") return std::nullopt;
  const auto routes = impl_->routes.Load();
  const auto found = routes->by_resource.find(KeyOf(info.api_group, info.api_version, info.resource));
  if (found == routes->by_resource.end()) return std::nullopt;
  return [self = impl_, route = found->second](endpoints::ExchangePtr inner) {
    return Impl::Forward(self, route, std::move(inner));
  };
}

std::uint64_t PeerProxy::Generation() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->generation;
}

std::string PeerProxy::Merge(std::string_view local_items) const {
  base::Arena arena;
  std::vector<PeerDocumentPtr> held;  // the merged Values refer to them
  std::vector<ServerDiscovery> servers;
  {
    std::lock_guard lock(impl_->mutex);
    for (const auto& [id, document] : impl_->documents) {
      Value groups = Value::List(arena);
      for (const Value& group : document->groups().items()) {
        const std::string name(group.Get("metadata", "name").as_string());
        Value versions = Value::List(arena);
        for (const Value& version : group["versions"].items()) {
          if (!impl_->exclusions.Contains(name, std::string(version["version"].as_string())))
            versions.Append(arena, version);
        }
        if (versions.empty()) continue;
        Value kept = Value::Map(arena, 2);
        kept.Set(arena, "metadata", group["metadata"]);
        kept.Set(arena, "versions", versions);
        groups.Append(arena, kept);
      }
      servers.push_back({id, groups});
      held.push_back(document);
    }
  }
  if (servers.empty()) return std::string(local_items);
  const std::string text = "{\"items\":[" + std::string(local_items) + "]}";
  const auto local = codec::DecodeJSON(arena, text, DiscoveryListType());
  if (!local.ok()) return std::string(local_items);
  servers.push_back({impl_->options.server_id, local->value["items"]});
  const Value merged = MergeDiscovery(arena, impl_->options.server_id, servers);
  if (merged.identity() == servers.back().groups.identity()) return std::string(local_items);
  Value list = Value::Map(arena, 1);
  list.Set(arena, "items", merged);
  std::string out;
  codec::EncodeJSON(list, DiscoveryListType(), out);
  constexpr std::string_view kItems = "\"items\":[";
  const std::size_t begin = out.find(kItems) + kItems.size();
  return out.substr(begin, out.rfind(']') - begin);
}

}  // namespace keelson::peerproxy
