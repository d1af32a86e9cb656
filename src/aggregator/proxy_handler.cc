#include "aggregator/proxy_handler.h"

#include <algorithm>

#include "apidocs/discovery_documents.h"
#include "base/strings.h"
#include "endpoints/auth_proxy.h"
#include "endpoints/page.h"
#include "endpoints/upgrade_aware_proxy.h"
#include "object/json_text.h"
#include "schema/types.h"

namespace keelson::aggregator {
namespace {

constexpr std::chrono::seconds kDiscoveryTimeout{5};

// Discovery requests have three segments at most: they get a shorter deadline.
bool IsDiscoveryPath(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return base::Split(path, '/').size() == 3;
}

telemetry::Span StartSpan(const endpoints::Exchange& exchange, const proxy::Location& location) {
  const telemetry::Span& parent = exchange.context.span;
  if (!parent.recording()) return parent;
  return parent.StartAs(
      telemetry::Instrumentation::kHTTP, telemetry::SpanKind::kClient, "HTTP " + exchange.http.method,
      {{"http.request.method", exchange.http.method},
       {"url.full", location.URL()},
       {"server.address", location.host},
       {"server.port", base::ParseUint64(location.port).value_or(location.scheme == "https" ? 443 : 80)}});
}

Awaitable<http::Response> GroupDocument(std::shared_ptr<const endpoints::AssembledDocument> document,
                                        endpoints::ExchangePtr exchange) {
  co_return document->Respond(*exchange);
}

// The URL of the APIService's backend for this request. The error page has kube-aggregator's text, such as "service
// unavailable" with 503.
Outcome<proxy::Location, endpoints::Page> Locate(const ProxyHandlerOptions& options, const Backend& backend,
                                                 const endpoints::Exchange& exchange) {
  const auto unavailable = [] { return endpoints::ErrorPage(503, "service unavailable"); };
  if (!backend.service->IsAvailable()) return unavailable();
  if (!exchange.context.user) return endpoints::ErrorPage(500, "missing user");
  auto location = options.backends->Resolve(*backend.service);
  if (!location.ok()) return unavailable();
  if (backend.transport == nullptr) return endpoints::ErrorPage(500, backend.error);
  return *std::move(location);
}

}  // namespace

std::vector<std::string> OrderedVersions(const std::vector<APIServicePtr>& services) {
  auto sorted = services;
  std::ranges::sort(sorted, [](const APIServicePtr& a, const APIServicePtr& b) {
    if (a->version_priority != b->version_priority) return a->version_priority > b->version_priority;
    return apidocs::ComesBeforeAsVersion(a->version, b->version);
  });
  std::vector<std::string> versions;
  for (const auto& service : sorted) versions.push_back(service->version);
  return versions;
}

std::string APIGroupJSON(const std::string& group, const std::vector<std::string>& versions) {
  const auto entry = [&](const std::string& version) {
    std::string out = "{\"groupVersion\":";
    object::AppendJSONString(out, group + "/" + version);
    out += ",\"version\":";
    object::AppendJSONString(out, version);
    return out + "}";
  };
  std::string out = "{\"name\":";
  object::AppendJSONString(out, group);
  out += ",\"versions\":[";
  for (std::size_t i = 0; i < versions.size(); ++i) out += (i == 0 ? "" : ",") + entry(versions[i]);
  out += "]";
  if (!versions.empty()) out += ",\"preferredVersion\":" + entry(versions.front());
  return out + "}";
}

std::shared_ptr<const ProxyHandler::Remote> ProxyHandler::RemoteOf(const APIServices& services) const {
  auto remote = std::make_shared<Remote>();
  for (auto at = services.begin(); at.valid(); at.Next()) {
    const APIServicePtr& service = *at;
    if (service->local) continue;
    auto backend = options_.backends->Get(service);
    if (service->group.empty()) {
      remote->core = std::move(backend);
    } else {
      remote->backends.emplace(service->group + "/" + service->version, std::move(backend));
    }
  }
  return remote;
}

void ProxyHandler::Publish(const ChangedGroups& groups, const APIServices* remote) {
  auto table = base::MakeRef<Table>();
  if (const auto before = table_.Load()) {
    table->remote = before->remote;
    table->groups = before->groups;
  }
  if (remote != nullptr) table->remote = RemoteOf(*remote);
  for (const auto& [name, members] : groups) {
    if (name.empty() || options_.built_in_groups.contains(name)) continue;
    if (members.empty()) {
      table->groups.Erase(name);
      continue;
    }
    auto group = base::MakeRef<Group>();
    group->name = name;
    group->document = std::make_shared<endpoints::AssembledDocument>(
        "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," + APIGroupJSON(name, OrderedVersions(members)).substr(1),
        schema::types::meta_v1::kAPIGroup, "v1", "APIGroup");
    table->groups.Put(base::Ref<const Group>(group));
  }
  table_.Store(base::Ref<const Table>(table));
}

std::optional<endpoints::Handler> ProxyHandler::Find(const endpoints::Exchange& exchange) const {
  constexpr std::string_view kGroups = "/apis/";
  const std::string_view path = exchange.http.path;
  const auto table = table_.Load();
  if (!table) return std::nullopt;
  BackendPtr backend;
  if (path.starts_with(kGroups)) {
    std::string_view rest = path.substr(kGroups.size());
    const auto slash = rest.find('/');
    const std::string_view group = rest.substr(0, slash);
    if (slash == std::string_view::npos || slash + 1 == rest.size()) {
      const auto* const found = table->groups.Find(group);
      if (found == nullptr) return std::nullopt;
      return [document = (*found)->document](endpoints::ExchangePtr inner) {
        return GroupDocument(document, std::move(inner));
      };
    }
    const auto& backends = table->remote->backends;
    if (backends.empty()) return std::nullopt;
    const auto end = rest.find('/', slash + 1);
    const auto found = backends.find(rest.substr(0, end));
    if (found == backends.end()) return std::nullopt;
    backend = found->second;
  } else if (table->remote->core != nullptr && (path == "/api" || path.starts_with("/api/"))) {
    backend = table->remote->core;
  }
  if (backend == nullptr) return std::nullopt;
  return [options = options_, backend](endpoints::ExchangePtr inner) {
    const std::string target = inner->http.path;
    return Forward(options, backend, target, std::move(inner));
  };
}

Awaitable<http::Response> ProxyHandler::Forward(ProxyHandlerOptions options, BackendPtr backend, std::string path,
                                                endpoints::ExchangePtr exchange) {
  auto location = Locate(options, *backend, *exchange);
  if (!location.ok()) co_return endpoints::PageResponse(*exchange, std::move(location.error()));
  http::Headers& headers = exchange->http.headers;
  const request::User& user = *exchange->context.user;
  endpoints::SetAuthProxyHeaders(headers, {.user = user.name,
                                           .uid = options.send_uid ? user.uid : std::string(),
                                           .groups = user.groups,
                                           .extra = user.extra});
  headers.Set("Audit-Id", exchange->context.audit_id);
  endpoints::ProxyOptions proxy;
  proxy.location = *std::move(location);
  proxy.location.path = std::move(path);
  proxy.location.raw_query = endpoints::EncodedQuery(exchange->http.raw_query);
  proxy.transport = backend->transport;
  proxy.wrap_transport = true;
  proxy.aggregated = true;
  proxy.reject_redirects = options.reject_redirects;
  if (IsDiscoveryPath(exchange->http.path)) proxy.deadline = std::chrono::steady_clock::now() + kDiscoveryTimeout;
  const telemetry::ScopedSpan span = StartSpan(*exchange, proxy.location);
  for (const auto& [name, value] : span->Propagation()) headers.Set(name, value);
  auto response = co_await endpoints::ServeUpgradeAware(std::move(proxy), std::move(exchange));
  span->SetAttribute({"http.response.status_code", response.status});
  co_return response;
}

}  // namespace keelson::aggregator
