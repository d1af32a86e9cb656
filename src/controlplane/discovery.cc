#include "controlplane/discovery.h"

#include <array>
#include <tuple>

#include "apidocs/discovery_documents.h"
#include "base/atomic_ref.h"
#include "codec/json.h"
#include "controlplane/served_groups.h"
#include "endpoints/api_group_version.h"
#include "endpoints/assembled_document.h"
#include "endpoints/documents.h"
#include "endpoints/negotiation.h"
#include "endpoints/responses.h"
#include "schema/schema.h"
#include "schema/types.h"

namespace keelson::controlplane {
namespace {

using apidocs::DiscoveryGroup;
using endpoints::ExchangePtr;

constexpr std::string_view kAggregatedParameters = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// /api or /apis at one moment: the plain and the aggregated form.
struct GroupDocuments : base::RefCounted {
  std::pair<std::uint64_t, std::uint64_t> generation;  // of the source's fragments and of the merger
  std::shared_ptr<const endpoints::AssembledDocument> plain, aggregated;
  std::string etag;   // of the aggregated form
  std::string items;  // of the aggregated form, for merging with others'
};

// The aggregated form of /apis with what peers serve.
struct PeerDocuments : base::RefCounted {
  std::pair<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> generation;  // of our own documents, of the peers'
  std::shared_ptr<const endpoints::AssembledDocument> aggregated;
  std::string etag;
};

struct Counters {
  telemetry::Counter* nopeer = nullptr;
  telemetry::Counter* hits = nullptr;
  telemetry::Counter* misses = nullptr;
};

Counters Register(telemetry::MetricsRegistry& registry) {
  const auto counter = [&](std::string_view name, std::string_view help) {
    return &registry.NewCounter({.name = name, .help = help, .stability = telemetry::Stability::kAlpha});
  };
  return {.nopeer = counter("aggregator_discovery_nopeer_requests_total",
                            "Counter of number of times no-peer (non peer-aggregated) discovery was requested"),
          .hits = counter("aggregator_discovery_peer_aggregated_cache_hits_total",
                          "Counter of number of times discovery was served from peer-aggregated cache"),
          .misses = counter("aggregator_discovery_peer_aggregated_cache_misses_total",
                            "Counter of number of times discovery was aggregated across all API servers")};
}

void Count(telemetry::Counter* counter) {
  if (counter != nullptr) counter->Inc();
}

// The built-in groups as fragments, in their order.
std::vector<apidocs::DiscoveryFragmentPtr> Fragments(const std::vector<DiscoveryGroup>& groups, const Value& plain,
                                                     const Value& aggregated) {
  const schema::Struct& group_type = schema::types::meta_v1::kAPIGroup;
  const schema::Struct& discovery_type = schema::types::apidiscovery_v2::kAPIGroupDiscovery;
  std::vector<apidocs::DiscoveryFragmentPtr> fragments;
  for (const DiscoveryGroup& group : groups) {
    auto fragment = std::make_shared<apidocs::DiscoveryFragment>();
    fragment->group = group.group;
    for (const schema::Package* package : group.versions)
      fragment->versions.push_back({std::string(package->version), ""});
    for (const Value& item : plain.items()) {
      if (item["name"].as_string() == group.group) codec::EncodeJSON(item, group_type, fragment->api_group);
    }
    for (const Value& item : aggregated.items()) {
      if (item["metadata"]["name"].as_string() == group.group)
        codec::EncodeJSON(item, discovery_type, fragment->aggregated);
    }
    fragments.push_back(std::move(fragment));
  }
  return fragments;
}

// Puts the documents together: the built-in groups, then those of a source, as they are at the time of the request.
class GroupList {
 public:
  GroupList(std::string plain_head, std::string plain_tail, const schema::Struct& type,
            std::vector<apidocs::DiscoveryFragmentPtr> built_in, std::shared_ptr<const apidocs::DiscoverySource> source,
            std::shared_ptr<const apidocs::DiscoveryMerger> merger,
            std::shared_ptr<const endpoints::PeerDiscovery> peers)
      : plain_head_(std::move(plain_head)),
        plain_tail_(std::move(plain_tail)),
        type_(type),
        built_in_(std::move(built_in)),
        source_(std::move(source)),
        merger_(std::move(merger)),
        peers_(std::move(peers)) {}

  base::Ref<const GroupDocuments> Current() const {
    const auto fragments = source_ ? source_->Discovery() : nullptr;
    const std::pair generation(fragments ? fragments->generation : 0, merger_ ? merger_->Generation() : 0);
    if (auto made = made_.Load(); made && made->generation == generation) return made;
    static const std::vector<apidocs::DiscoveryFragmentPtr> kNone;
    const auto merged = Merge(fragments ? fragments->groups : kNone);
    const std::string &plain = merged.groups, &items = merged.aggregated;
    auto documents = base::MakeRef<GroupDocuments>();
    documents->generation = generation;
    documents->plain = std::make_shared<endpoints::AssembledDocument>(plain_head_ + plain + plain_tail_, type_, "v1",
                                                                      std::string(type_.name));
    std::tie(documents->aggregated, documents->etag) = Aggregated(items);
    if (peers_) documents->items = items;
    base::Ref<const GroupDocuments> result(documents);
    made_.Store(result);
    return result;
  }

  bool has_peers() const { return peers_ != nullptr; }
  // REQUIRES: has_peers().
  base::Ref<const PeerDocuments> WithPeers(const GroupDocuments& own, const Counters& counters) const {
    const std::pair generation(own.generation, peers_->Generation());
    if (auto made = with_peers_.Load(); made && made->generation == generation) {
      Count(counters.hits);
      return made;
    }
    Count(counters.misses);
    auto documents = base::MakeRef<PeerDocuments>();
    documents->generation = generation;
    std::tie(documents->aggregated, documents->etag) = Aggregated(peers_->Merge(own.items));
    base::Ref<const PeerDocuments> result(documents);
    with_peers_.Store(result);
    return result;
  }

 private:
  // The document of these items, and its ETag.
  static std::pair<std::shared_ptr<const endpoints::AssembledDocument>, std::string> Aggregated(
      const std::string& items) {
    const std::string rest = "\"metadata\":{},\"items\":[" + items + "]}";
    auto document = std::make_shared<const endpoints::AssembledDocument>(
        "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\"," + rest,
        schema::types::apidiscovery_v2::kAPIGroupDiscoveryList, "apidiscovery.k8s.io/v2", "APIGroupDiscoveryList");
    return {std::move(document), apidocs::ETagOf("{" + rest)};
  }

  apidocs::DiscoveryMerger::Merged Merge(const std::vector<apidocs::DiscoveryFragmentPtr>& custom) const {
    if (merger_) return merger_->Merge(built_in_, custom);
    apidocs::DiscoveryMerger::Merged merged;
    for (const auto* list : {&built_in_, &custom}) {
      for (const auto& group : *list) {
        if (!group->api_group.empty()) merged.groups += (merged.groups.empty() ? "" : ",") + group->api_group;
        merged.aggregated += (merged.aggregated.empty() ? "" : ",") + group->aggregated;
      }
    }
    return merged;
  }

  const std::string plain_head_, plain_tail_;
  const schema::Struct& type_;
  const std::vector<apidocs::DiscoveryFragmentPtr> built_in_;
  const std::shared_ptr<const apidocs::DiscoverySource> source_;
  const std::shared_ptr<const apidocs::DiscoveryMerger> merger_;
  const std::shared_ptr<const endpoints::PeerDiscovery> peers_;
  mutable base::AtomicRef<const GroupDocuments> made_;
  mutable base::AtomicRef<const PeerDocuments> with_peers_;
};

struct AggregatedForm {
  endpoints::Format format = endpoints::Format::kJSON;
  bool nopeer = false;  // without what peers serve
};

// The aggregated form that the best acceptable clause requests, if any.
std::optional<AggregatedForm> WantsAggregated(const http::Request& request) {
  for (const endpoints::AcceptClause& clause : endpoints::ParseAccept(request.headers.Get("Accept"))) {
    std::string as, group, version, profile;
    for (const auto& [key, value] : clause.parameters) {
      if (key == "as") as = value;
      if (key == "g") group = value;
      if (key == "v") version = value;
      if (key == "profile") profile = value;
    }
    const std::string type = clause.type + "/" + clause.subtype;
    const bool json = type == "application/json" || type == "*/*" || type == "application/*";
    const bool yaml = type == "application/yaml";
    const bool protobuf = type == "application/vnd.kubernetes.protobuf";
    if (!json && !yaml && !protobuf) continue;
    if (as.empty()) return std::nullopt;  // a plain clause comes first
    if (as != "APIGroupDiscoveryList" || group != "apidiscovery.k8s.io" || version != "v2") continue;
    const auto other = yaml ? endpoints::Format::kYAML : endpoints::Format::kProtobuf;
    return AggregatedForm{.format = json ? endpoints::Format::kJSON : other, .nopeer = profile == "nopeer"};
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 3> kProduces = {"application/json", "application/yaml",
                                                       "application/vnd.kubernetes.protobuf"};

enum class Methods : std::uint8_t { kGet, kAny };

struct ListHandling {
  bool aggregated = true;  // the aggregated form can be had
  Methods methods = Methods::kAny;
  bool peer_aware = false;
  Counters counters;
};

Awaitable<http::Response> ServeGroupList(std::shared_ptr<const GroupList> list, ListHandling handling,
                                         ExchangePtr exchange) {
  const bool takes_method = handling.methods == Methods::kAny || exchange->http.method == "GET";
  const auto wanted = handling.aggregated && takes_method ? WantsAggregated(exchange->http) : std::nullopt;
  const auto documents = list->Current();
  if (wanted) {
    if (wanted->nopeer && handling.peer_aware) Count(handling.counters.nopeer);
    if (wanted->nopeer || !list->has_peers())
      co_return documents->aggregated->RespondTagged(*exchange, wanted->format, kAggregatedParameters, documents->etag);
    const auto all = list->WithPeers(*documents, handling.counters);
    co_return all->aggregated->RespondTagged(*exchange, wanted->format, kAggregatedParameters, all->etag);
  }
  if (handling.methods == Methods::kGet) {
    if (exchange->http.method != "GET") co_return endpoints::NoMethod(*exchange);
    if (auto refused = endpoints::CheckAccept(*exchange, kProduces)) co_return std::move(*refused);
  }
  co_return documents->plain->Respond(*exchange);
}

endpoints::Handler GroupListHandler(std::shared_ptr<const GroupList> list, ListHandling handling) {
  return [list = std::move(list), handling](ExchangePtr exchange) {
    return ServeGroupList(list, handling, std::move(exchange));
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
  groups_ = apidocs::DiscoveryGroups(
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

void InstallDiscovery(server::GenericAPIServer& server, DiscoveryOptions options) {
  namespace types = schema::types::meta_v1;
  base::Arena arena;
  const ServedGroups all(server);
  const std::vector<DiscoveryGroup>& groups = all.groups();
  const apidocs::IsServed& served = all.is_served();
  const auto handler = [&](Value document, const schema::Struct& type, endpoints::DocumentOptions how = {}) {
    return endpoints::NegotiatedDocument(arena, document, type, type.name, how);
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
           handler(apidocs::APIResourceListDocument(arena, *package, served), types::kAPIResourceList,
                   {.cbor = options.cbor}));
    }
    if (!group.group.empty())
      both("/apis/" + std::string(group.group),
           handler(apidocs::APIGroupDocument(arena, group), types::kAPIGroup, {.any_method = true}));
  }
  const auto fragments = [&](const std::vector<DiscoveryGroup>& of, const Value& plain) {
    return Fragments(of, plain, apidocs::AggregatedDiscoveryDocument(arena, of, served)["items"]);
  };
  std::string versions;
  codec::EncodeJSON(apidocs::APIVersionsDocument(arena, groups, options.external_address), types::kAPIVersions,
                    versions);
  const auto api = std::make_shared<const GroupList>(versions, "", types::kAPIVersions, fragments(core, Value()),
                                                     nullptr, nullptr, nullptr);
  const auto apis = std::make_shared<const GroupList>(
      "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[", "]}", types::kAPIGroupList,
      fragments(others, apidocs::APIGroupListDocument(arena, groups)["groups"]), std::move(options.source),
      std::move(options.merger), std::move(options.peers));
  const Counters counters = options.metrics != nullptr ? Register(*options.metrics) : Counters();
  const ListHandling get{.methods = Methods::kGet, .peer_aware = options.peer_aware, .counters = counters};
  mux.Handle("/api", GroupListHandler(api, get));
  mux.Unlisted("/api/", GroupListHandler(api, get));
  mux.Handle("/apis", GroupListHandler(apis, {.peer_aware = options.peer_aware, .counters = counters}));
  mux.Handle("/apis/", GroupListHandler(apis, {.aggregated = false}));
}

}  // namespace keelson::controlplane
