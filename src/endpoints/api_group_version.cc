#include "endpoints/api_group_version.h"

#include <algorithm>
#include <array>

#include "base/split_view.h"
#include "base/strings.h"
#include "endpoints/responses.h"

namespace keelson::endpoints {
namespace {

// Media types of CBOR are last in each list.
constexpr std::array<std::string_view, 4> kProduces = {"application/json", "application/yaml",
                                                       "application/vnd.kubernetes.protobuf", "application/cbor"};
constexpr std::array<std::string_view, 5> kProducesStreams = {
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch"};
constexpr std::array<std::string_view, 7> kProducesCBORStreams = {"application/json",
                                                                  "application/yaml",
                                                                  "application/vnd.kubernetes.protobuf",
                                                                  "application/cbor",
                                                                  "application/json;stream=watch",
                                                                  "application/vnd.kubernetes.protobuf;stream=watch",
                                                                  kCBORSequence};
constexpr std::array<std::string_view, 5> kPatchTypes = {"application/json-patch+json", "application/merge-patch+json",
                                                         "application/strategic-merge-patch+json",
                                                         "application/apply-patch+yaml", kApplyCBORPatch};

// The media types an endpoint produces, by upstream's names.
std::span<const std::string_view> Produces(bool streams, bool cbor) {
  if (!streams) return std::span(kProduces).first(kProduces.size() - (cbor ? 0 : 1));
  if (cbor) return kProducesCBORStreams;
  return kProducesStreams;
}

// The resource, name and subresource of the request's path, as RequestInfo has read them.
struct Target {
  explicit Target(const request::RequestInfo& info)
      : watch(info.prefixed && info.verb == "watch"), namespaced(info.namespaced) {
    // A field selector that pins metadata.name sets info.name; the route is the path's alone.
    if (info.prefixed && !watch) return;  // proxy/: no resource has such a route
    resource = info.resource;
    if (info.named) name = info.name;
    subresource = info.subresource;
    has_rest = info.part_count > 3;
  }
  bool watch;
  bool namespaced;
  bool has_rest = false;
  std::string_view resource;
  std::string_view name;
  std::string_view subresource;
};

bool HasVerb(std::span<const std::string_view> verbs, std::string_view verb) {
  return std::ranges::find(verbs, verb) != verbs.end();
}

Awaitable<http::Response> ListOrWatch(ScopePtr scope, ExchangePtr exchange) {
  return ListResource(std::move(scope), std::move(exchange), false);
}

}  // namespace

http::Response NoRoute(const Exchange& exchange) {
  return StatusResponse(exchange, meta::NewGenericServerResponse(404, exchange.http.method, {}, "", "", 0));
}

http::Response NoMethod(const Exchange& exchange) {
  return StatusResponse(exchange, meta::NewGenericServerResponse(405, exchange.http.method, {}, "", "", 0));
}

std::optional<http::Response> CheckAccept(const Exchange& exchange, std::span<const std::string_view> produces) {
  const std::string_view header = exchange.http.headers.Get("Accept");
  if (header.empty()) return std::nullopt;
  for (const std::string_view clause : base::SplitView(header, ',')) {
    const std::string_view type = base::Trim(clause.substr(0, clause.find(';')));
    if (type == "*/*") return std::nullopt;
    for (const std::string_view produced : produces) {
      if (type == produced.substr(0, produced.find(';'))) return std::nullopt;
    }
  }
  std::vector<std::string> names(produces.begin(), produces.end());
  return StatusResponse(exchange,
                        meta::NewGenericServerResponse(
                            406, exchange.http.method, {}, "",
                            "406: Not Acceptable\n\nAvailable representations: " + base::Join(names, ", "), 0));
}

APIGroupVersion::APIGroupVersion(std::string group, std::string version)
    : group_(std::move(group)),
      version_(std::move(version)),
      prefix_(group_.empty() ? "/api/" + version_ : "/apis/" + group_ + "/" + version_) {}

void APIGroupVersion::Add(std::string_view plural, std::string_view subresource, Route route) {
  routes_[std::string(plural)][std::string(subresource)] = std::move(route);
}

const Route* APIGroupVersion::Find(std::string_view plural, std::string_view subresource) const {
  const auto resource = routes_.find(plural);
  if (resource == routes_.end()) return nullptr;
  const auto found = resource->second.find(subresource);
  return found == resource->second.end() ? nullptr : &found->second;
}

std::vector<const Route*> APIGroupVersion::Resources() const {
  std::vector<const Route*> found;
  for (const auto& [plural, parts] : routes_) {
    if (const auto main = parts.find(""); main != parts.end()) found.push_back(&main->second);
  }
  return found;
}

Awaitable<http::Response> APIGroupVersion::Handle(ExchangePtr exchange) const {
  const Target target(exchange->context.info);
  if (target.resource.empty()) return Immediately(NoRoute(*exchange));

  const Route* route = Find(target.resource, target.subresource);
  if (route == nullptr) return Immediately(NoRoute(*exchange));
  if (target.has_rest && !route->connects) return Immediately(NoRoute(*exchange));
  const bool is_item = !target.name.empty();
  const bool namespaced_kind = route->scope->namespaced;
  if (target.namespaced != namespaced_kind && !(namespaced_kind && !target.namespaced && !is_item))
    return Immediately(NoRoute(*exchange));
  if (target.watch && (!route->watchable || !target.subresource.empty())) return Immediately(NoRoute(*exchange));

  const bool cbor = route->scope->restrictions.allow_cbor;
  exchange->allow_cbor = cbor;
  exchange->allow_gzip = route->scope->compress;
  const auto& handlers = is_item ? route->item : route->collection;
  const std::string& method = exchange->http.method;
  exchange->routed = true;
  exchange->trace.EncodeIn(route->scope->kind.group_version().ToString());
  if (target.watch) {
    if (method != "GET") return Immediately(NoMethod(*exchange));
    if (auto refused = CheckAccept(*exchange, Produces(true, cbor))) return Immediately(*std::move(refused));
    return ListResource(route->scope, std::move(exchange), true);
  }
  // Across all namespaces only reading is possible.
  const bool across = namespaced_kind && !target.namespaced;
  const auto handler = handlers.find(method);
  if (handler == handlers.end() || (across && method != "GET")) {
    return Immediately(handlers.empty() ? NoRoute(*exchange) : NoMethod(*exchange));
  }
  if (!route->connects) {
    if (method == "PATCH") {
      // Case counts here (go-restful compares with the route's list), unlike where a body's media type is parsed.
      const std::string_view header = exchange->http.headers.Get("Content-Type");
      const std::string_view type = base::Trim(header.substr(0, header.find(';')));
      const auto known = std::span(kPatchTypes).first(kPatchTypes.size() - (cbor ? 0 : 1));
      if (std::ranges::find(known, type) == known.end()) {
        return Immediately(StatusResponse(
            *exchange, meta::NewGenericServerResponse(415, method, {}, "", "415: Unsupported Media Type", 0)));
      }
    }
    const bool streams = method == "GET" && !is_item;
    if (auto refused = CheckAccept(*exchange, Produces(streams, cbor))) return Immediately(*std::move(refused));
  }
  if (!route->scope->deprecation_warning.empty()) {
    exchange->context.warnings.Add(route->scope->deprecation_warning);
    exchange->context.audit_annotations.Add("k8s.io/deprecated", "true");
  }
  return handler->second(route->scope, std::move(exchange));
}

Route StoredResourceRoute(ScopePtr scope, std::span<const std::string_view> verbs) {
  Route route{.scope = std::move(scope)};
  if (HasVerb(verbs, "get")) route.item["GET"] = GetResource;
  if (HasVerb(verbs, "update")) route.item["PUT"] = UpdateResource;
  if (HasVerb(verbs, "patch")) route.item["PATCH"] = PatchResource;
  if (HasVerb(verbs, "delete")) route.item["DELETE"] = DeleteResource;
  if (HasVerb(verbs, "list")) route.collection["GET"] = ListOrWatch;
  if (HasVerb(verbs, "create")) route.collection["POST"] = CreateResource;
  if (HasVerb(verbs, "deletecollection")) route.collection["DELETE"] = DeleteCollection;
  route.watchable = HasVerb(verbs, "watch");
  return route;
}

Route StoredSubresourceRoute(ScopePtr scope, std::span<const std::string_view> verbs) {
  Route route{.scope = std::move(scope)};
  if (HasVerb(verbs, "get")) route.item["GET"] = GetResource;
  if (HasVerb(verbs, "update")) route.item["PUT"] = UpdateResource;
  if (HasVerb(verbs, "patch")) route.item["PATCH"] = PatchResource;
  return route;
}

}  // namespace keelson::endpoints
