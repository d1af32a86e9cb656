#include "aggregator/openapi.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <mutex>
#include <set>

#include "aggregator/openapi_convert.h"
#include "aggregator/openapi_merge.h"
#include "apidocs/discovery_documents.h"
#include "async/gate.h"
#include "object/json_text.h"

namespace keelson::aggregator {
namespace {

constexpr std::string_view kV3Prefix = "/openapi/v3/";
constexpr std::chrono::seconds kTimeout{60};

// The documents of one remote server as they were fetched last.
struct Remote {
  std::vector<APIServicePtr> services;
  std::string v2;                         // JSON; "" when it has none
  std::string v2_etag;                    // the server's
  std::map<std::string, std::string> v3;  // key → server relative URL; empty when it has no v3
};

Fetch FetchOf(const std::string& path, const proxy::Location& location, const std::string& etag) {
  Fetch fetch;
  fetch.path = path;
  fetch.headers.Add("Accept", "application/json");
  if (!etag.empty()) fetch.headers.Add("If-None-Match", etag);
  fetch.headers.Add("X-Forwarded-Host", location.Authority());
  fetch.headers.Add("X-Forwarded-Proto", "https");
  fetch.headers.Add("X-Forwarded-Uri", path);
  fetch.user = "system:aggregator";
  fetch.timeout = kTimeout;
  return fetch;
}

std::map<std::string, std::string> KeysOf(std::string_view document) {
  std::map<std::string, std::string> keys;
  base::Arena arena;
  const auto root = object::ParseJSON(arena, document);
  if (!root) return keys;
  for (const auto& member : (*root)["paths"].members())
    keys.emplace(std::string(member.key), std::string(member.value["serverRelativeURL"].as_string()));
  return keys;
}

}  // namespace

struct OpenAPIAggregator::Impl : std::enable_shared_from_this<Impl> {
  Impl(async::IOPool& io, Backends& backends) : io(io), backends(backends) {}
  async::IOPool& io;
  Backends& backends;
  std::shared_ptr<const apidocs::DiscoverySource> custom;
  async::Gate gate;
  mutable std::mutex mutex;
  std::uint64_t generation = 1;
  std::map<std::string, Remote> remotes;  // by service
  std::set<std::string> fetching;

  static Awaitable<void> FetchBoth(std::shared_ptr<Impl> self, std::string key, APIServicePtr service, std::string etag,
                                   async::Gate::Entry entry) {
    // co_spawn may run a coroutine's beginning at once, and the caller holds the lock.
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
    const auto backend = self->backends.Get(service);
    auto location = self->backends.Resolve(*service);
    if (location.ok()) {
      auto v3 = co_await self->backends.DoAt(backend, *location, FetchOf("/openapi/v3", *location, ""));
      auto v2 = co_await self->backends.DoAt(backend, *location, FetchOf("/openapi/v2", *location, etag));
      self->Take(key, v3, v2);
    }
    std::lock_guard lock(self->mutex);
    self->fetching.erase(key);
    (void)entry;
  }

  void Take(const std::string& key, const Outcome<Fetched, std::string>& v3, const Outcome<Fetched, std::string>& v2) {
    std::lock_guard lock(mutex);
    const auto found = remotes.find(key);
    if (found == remotes.end()) return;
    Remote& remote = found->second;
    bool changed = false;
    if (v3.ok()) {
      auto keys = v3->status == 200 ? KeysOf(v3->body) : std::map<std::string, std::string>();
      changed = keys != remote.v3;
      remote.v3 = std::move(keys);
    }
    if (v2.ok() && v2->status != 304) {
      std::string text = v2->status == 200 && IsOpenAPIv2(v2->body) ? v2->body : std::string();
      changed = changed || text != remote.v2;
      remote.v2 = std::move(text);
      remote.v2_etag = v2->headers.Get("Etag");
    }
    if (changed) ++generation;
  }

  // REQUIRES: mutex held.
  void Start(const std::string& key, const Remote& remote) {
    if (remote.services.empty() || !fetching.insert(key).second) return;
    auto entry = gate.Enter();
    if (!entry) return;
    asio::co_spawn(io.Next(),
                   FetchBoth(shared_from_this(), key, remote.services.front(), remote.v2_etag, *std::move(entry)),
                   asio::detached);
  }

  void AppendRemote(const Remote& remote, std::string_view base, std::string& paths, std::string& definitions) const {
    base::Arena arena;
    const auto parsed = object::ParseJSON(arena, remote.v2);
    if (!parsed) return;
    std::vector<std::string> prefixes;
    for (const APIServicePtr& service : remote.services) prefixes.push_back(service->Path() + "/");
    MergeOpenAPIv2(base, *parsed, prefixes, paths, definitions);
  }
};

OpenAPIAggregator::OpenAPIAggregator(async::IOPool& io, Backends& backends,
                                     std::shared_ptr<const apidocs::DiscoverySource> custom)
    : impl_(std::make_shared<Impl>(io, backends)) {
  impl_->custom = std::move(custom);
}

OpenAPIAggregator::~OpenAPIAggregator() { Stop(); }

void OpenAPIAggregator::Publish(APIServices services) {
  std::map<std::string, std::vector<APIServicePtr>> wanted;
  for (auto at = services.begin(); at.valid(); at.Next()) {
    const APIServicePtr& service = *at;
    if (!service->local && !service->group.empty()) wanted[service->ServiceKey()].push_back(service);
  }
  std::lock_guard lock(impl_->mutex);
  const std::size_t before = impl_->remotes.size();
  std::erase_if(impl_->remotes, [&](const auto& entry) { return !wanted.contains(entry.first); });
  if (impl_->remotes.size() != before) ++impl_->generation;
  for (auto& [key, members] : wanted) {
    Remote& remote = impl_->remotes[key];
    const bool same =
        std::ranges::equal(remote.services, members, [](const auto& a, const auto& b) { return *a == *b; });
    remote.services = std::move(members);
    if (same) continue;
    ++impl_->generation;
    impl_->Start(key, remote);
  }
}

void OpenAPIAggregator::Refresh() {
  std::lock_guard lock(impl_->mutex);
  for (const auto& [key, remote] : impl_->remotes) impl_->Start(key, remote);
}

void OpenAPIAggregator::Stop() { impl_->gate.Close(); }

std::optional<endpoints::Handler> OpenAPIAggregator::Find(const endpoints::Exchange& exchange,
                                                          const ProxyHandlerOptions& options) const {
  const std::string_view path = exchange.http.path;
  if (!path.starts_with(kV3Prefix)) return std::nullopt;
  const std::string key(path.substr(kV3Prefix.size()));
  std::lock_guard lock(impl_->mutex);
  for (const auto& [service_key, remote] : impl_->remotes) {
    if (!remote.v3.contains(key)) continue;
    const auto backend = impl_->backends.Get(remote.services.front());
    return [options, backend](endpoints::ExchangePtr inner) {
      const std::string target = inner->http.path;
      return ProxyHandler::Forward(options, backend, target, std::move(inner));
    };
  }
  return std::nullopt;
}

std::shared_ptr<const apidocs::DiscoveryFragments> OpenAPIAggregator::Discovery() const {
  auto out = std::make_shared<apidocs::DiscoveryFragments>();
  if (impl_->custom) *out = *impl_->custom->Discovery();
  std::lock_guard lock(impl_->mutex);
  for (const auto& [key, remote] : impl_->remotes) {
    if (remote.v2.empty()) continue;
    auto fragment = std::make_shared<apidocs::DiscoveryFragment>();
    for (const auto& service : remote.services) {
      fragment->group = service->group;
      if (remote.v3.empty()) fragment->versions.push_back({service->version, apidocs::ETagOf(remote.v2)});
    }
    out->groups.push_back(std::move(fragment));
  }
  out->generation = (out->generation << 20) ^ impl_->generation;
  return out;
}

std::string OpenAPIAggregator::OpenAPIv3(std::string group, std::string version) const {
  {
    std::lock_guard lock(impl_->mutex);
    for (const auto& [key, remote] : impl_->remotes) {
      const bool own = std::ranges::any_of(remote.services, [&](const APIServicePtr& service) {
        return service->group == group && service->version == version;
      });
      if (!own || remote.v2.empty()) continue;
      base::Arena arena;
      const auto parsed = object::ParseJSON(arena, remote.v2);
      if (parsed) return object::ToJSON(ConvertV2ToV3(arena, *parsed));
    }
  }
  return impl_->custom ? impl_->custom->OpenAPIv3(std::move(group), std::move(version)) : std::string();
}

void OpenAPIAggregator::AppendOpenAPIv2(std::string& paths, std::string& definitions) const {
  AppendOpenAPIv2To({}, paths, definitions);
}

void OpenAPIAggregator::AppendOpenAPIv2To(std::string_view base, std::string& paths, std::string& definitions) const {
  if (impl_->custom) impl_->custom->AppendOpenAPIv2To(base, paths, definitions);
  std::lock_guard lock(impl_->mutex);
  for (const auto& [key, remote] : impl_->remotes) {
    if (!remote.v2.empty()) impl_->AppendRemote(remote, base, paths, definitions);
  }
}

std::vector<std::pair<std::string, std::string>> OpenAPIAggregator::OpenAPIv3URLs() const {
  std::vector<std::pair<std::string, std::string>> out;
  if (impl_->custom) out = impl_->custom->OpenAPIv3URLs();
  std::lock_guard lock(impl_->mutex);
  for (const auto& [key, remote] : impl_->remotes) out.insert(out.end(), remote.v3.begin(), remote.v3.end());
  return out;
}

}  // namespace keelson::aggregator
