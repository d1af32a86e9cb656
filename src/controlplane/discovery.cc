#include "controlplane/discovery.h"

#include "controlplane/served_groups.h"

#include "codec/json.h"
#include "codec/protobuf.h"
#include "endpoints/api_group_version.h"
#include "endpoints/discovery_documents.h"
#include "endpoints/documents.h"
#include "endpoints/negotiation.h"
#include "endpoints/responses.h"
#include "schema/schema.h"

namespace keelson::controlplane {
namespace {

using endpoints::DiscoveryGroup;
using endpoints::ExchangePtr;

// The aggregated form of /api or /apis, and the plain one for clients that do not ask for it.
struct AggregatedDocument {
  base::SharedBytes json, yaml, protobuf;
  std::string etag;
};

constexpr std::string_view kAggregatedParameters = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

std::shared_ptr<const AggregatedDocument> EncodeAggregated(base::Arena& arena, std::span<const DiscoveryGroup> groups,
                                                           const endpoints::IsServed& served) {
  const Value document = endpoints::AggregatedDiscoveryDocument(arena, groups, served);
  const schema::Struct& type = *schema::FindType("apidiscovery/v2", "APIGroupDiscoveryList");
  auto encoded = std::make_shared<AggregatedDocument>();
  std::string json, protobuf;
  codec::EncodeJSON(document, type, json);
  codec::EncodeProto(document, type, protobuf);
  encoded->etag = endpoints::AggregatedDiscoveryETag(document);
  encoded->yaml = base::SharedBytes(endpoints::ToYAML(document, type));
  encoded->json = base::SharedBytes(json + "\n");
  encoded->protobuf = base::SharedBytes::FromString(std::move(protobuf));
  return encoded;
}

// Whether the best clause that can be served asks for the aggregated form, and as what.
std::optional<endpoints::Format> WantsAggregated(const http::Request& request) {
  for (const endpoints::AcceptClause& clause : endpoints::ParseAccept(request.headers.Get("Accept"))) {
    std::string as, group, version;
    for (const auto& [key, value] : clause.parameters) {
      if (key == "as") as = value;
      if (key == "g") group = value;
      if (key == "v") version = value;
    }
    const std::string type = clause.type + "/" + clause.subtype;
    const bool json = type == "application/json" || type == "*/*" || type == "application/*";
    const bool yaml = type == "application/yaml";
    const bool protobuf = type == "application/vnd.kubernetes.protobuf";
    if (!json && !yaml && !protobuf) continue;
    if (as.empty()) return std::nullopt;  // a plain clause comes first
    if (as != "APIGroupDiscoveryList" || group != "apidiscovery.k8s.io" || version != "v2") continue;
    return json ? endpoints::Format::kJSON : yaml ? endpoints::Format::kYAML : endpoints::Format::kProtobuf;
  }
  return std::nullopt;
}

endpoints::Handler WithAggregated(endpoints::Handler plain, std::shared_ptr<const AggregatedDocument> aggregated) {
  return [plain = std::move(plain), aggregated](ExchangePtr exchange) -> Awaitable<http::Response> {
    const auto format = exchange->http.method == "GET" ? WantsAggregated(exchange->http) : std::nullopt;
    if (!format) co_return co_await plain(exchange);
    http::Response response;
    response.headers.Add("Content-Type",
                         std::string(endpoints::MediaType(*format)) + std::string(kAggregatedParameters));
    response.headers.Add("ETag", aggregated->etag);
    response.headers.Add("Vary", "Accept");
    response.headers.Add("Cache-Control", "public");
    if (exchange->http.headers.Get("If-None-Match") == aggregated->etag) {
      response.status = 304;
      response.headers.Remove("Content-Type");
      co_return response;
    }
    switch (*format) {
      case endpoints::Format::kYAML:
        response.body = aggregated->yaml;
        break;
      case endpoints::Format::kProtobuf:
        response.body = aggregated->protobuf;
        break;
      default:
        response.body = aggregated->json;
    }
    co_return response;
  };
}

}  // namespace

const endpoints::APIGroupVersion* ServedGroups::Find(std::string_view group, std::string_view version) const {
  for (const auto& candidate : versions_) {
    if (candidate->group() == group && candidate->version() == version) return candidate.get();
  }
  return nullptr;
}

ServedGroups::ServedGroups(const server::GenericAPIServer& server) {
  for (const server::APIGroupInfo* info : server.AllGroups())
    versions_.insert(versions_.end(), info->versions.begin(), info->versions.end());
  groups_ = endpoints::DiscoveryGroups(
      [this](const schema::Package& package) { return Find(package.group, package.version) != nullptr; });
  is_served_ = [versions = versions_](const schema::Resource& resource, std::string_view subresource) {
    for (const auto& version : versions) {
      if (version->group() == resource.group && version->version() == resource.version) {
        return version->Find(resource.plural, subresource) != nullptr;
      }
    }
    return false;
  };
}

void InstallDiscovery(server::GenericAPIServer& server, const std::string& external_address, bool cbor) {
  base::Arena arena;
  const ServedGroups all(server);
  const std::vector<DiscoveryGroup>& groups = all.groups();
  const endpoints::IsServed& served = all.is_served();
  const auto handler = [&](Value document, std::string_view kind, endpoints::DocumentOptions options = {}) {
    return endpoints::NegotiatedDocument(arena, document, *schema::FindType("meta/v1", kind), kind, options);
  };
  server::PathMux& mux = server.mux();
  const auto both = [&](const std::string& path, const endpoints::Handler& serve) {
    mux.Unlisted(path, serve);
    mux.Unlisted(path + "/", serve);
  };
  std::vector<DiscoveryGroup> core, others;
  for (const DiscoveryGroup& group : groups) {
    (group.group.empty() ? core : others).push_back(group);
    for (const schema::Package* package : group.versions) {
      both(all.Find(package->group, package->version)->prefix(),
           handler(endpoints::APIResourceListDocument(arena, *package, served), "APIResourceList", {.cbor = cbor}));
    }
    if (!group.group.empty())
      both("/apis/" + std::string(group.group),
           handler(endpoints::APIGroupDocument(arena, group), "APIGroup", {.any_method = true}));
  }
  const auto api = handler(endpoints::APIVersionsDocument(arena, groups, external_address), "APIVersions");
  const auto apis = handler(endpoints::APIGroupListDocument(arena, groups), "APIGroupList", {.any_method = true});
  mux.Handle("/api", WithAggregated(api, EncodeAggregated(arena, core, served)));
  mux.Unlisted("/api/", WithAggregated(api, EncodeAggregated(arena, core, served)));
  mux.Handle("/apis", WithAggregated(apis, EncodeAggregated(arena, others, served)));
  mux.Handle("/apis/", apis);
}

}  // namespace keelson::controlplane
