#include "aggregator/aggregator.h"

namespace keelson::aggregator {

Aggregator::Aggregator(AggregatorOptions options)
    : options_(std::move(options)),
      services_(options_.route_to_endpoints ? Routing::kEndpoints : Routing::kClusterIP),
      backends_({.io = options_.io, .resolver = &services_, .dialer = options_.cluster_dialer}),
      proxy_({.backends = &backends_,
              .reject_redirects = options_.reject_redirects,
              .send_uid = options_.send_uid,
              .built_in_groups = options_.built_in_groups}),
      discovery_(std::make_shared<DiscoveryAggregator>(*options_.io, backends_)),
      openapi_(std::make_shared<OpenAPIAggregator>(*options_.io, backends_, options_.custom)),
      availability_({.io = options_.io,
                     .services = &services_,
                     .backends = &backends_,
                     .metrics = options_.metrics,
                     .write = options_.write_condition}) {}

Aggregator::~Aggregator() { Stop(); }

void Aggregator::OnAPIServices(std::vector<Change> changes) {
  std::lock_guard lock(mutex_);
  std::set<std::string> groups;
  bool remote = false;
  for (Change& change : changes) {
    if (const APIServicePtr* const known = api_services_.Find(change.name)) {
      groups.insert((*known)->group);
      remote |= !(*known)->local;
      names_[(*known)->group].erase(change.name);
    }
    if (!change.service) {
      api_services_.Erase(change.name);
      backends_.Forget(change.name);
      availability_.OnAPIServiceDeleted(change.name);
      continue;
    }
    auto service = std::make_shared<const APIService>(*std::move(change.service));
    groups.insert(service->group);
    remote |= !service->local;
    names_[service->group].insert(service->name);
    api_services_.Put(service);
    availability_.OnAPIService(service);
  }
  Publish(groups, remote);
}

void Aggregator::Publish(const std::set<std::string>& groups, bool remote) {
  ProxyHandler::ChangedGroups changed;
  for (const std::string& group : groups) {
    auto& members = changed[group];
    const auto names = names_.find(group);
    if (names == names_.end()) continue;
    for (const std::string& name : names->second) members.push_back(*api_services_.Find(name));
    if (members.empty()) names_.erase(names);
  }
  proxy_.Publish(changed, remote ? &api_services_ : nullptr);
  if (!remote) return discovery_->PublishLocal(api_services_);
  discovery_->Publish(api_services_);
  openapi_->Publish(api_services_);
}

void Aggregator::OnService(const std::string& name_space, const std::string& name, const Value& object, bool deleted) {
  if (deleted) {
    services_.OnServiceDeleted(name_space, name);
  } else {
    services_.OnService(name_space, name, object);
  }
  availability_.OnServiceChanged(name_space, name);
}

void Aggregator::OnEndpointSlice(const std::string& name_space, const std::string& name, const Value& object,
                                 bool deleted) {
  if (deleted) {
    services_.OnEndpointSliceDeleted(name_space, name);
  } else {
    services_.OnEndpointSlice(name_space, name, object);
  }
  const std::string service(object.Get("metadata", "labels", "kubernetes.io/service-name").as_string());
  availability_.OnServiceChanged(name_space, service);
}

void Aggregator::SetClientCertificate(std::string certificate_pem, std::string key_pem) {
  backends_.SetClientCertificate(std::move(certificate_pem), std::move(key_pem));
  std::lock_guard lock(mutex_);
  Publish({}, true);
}

std::optional<endpoints::Handler> Aggregator::Find(const endpoints::Exchange& exchange) const {
  if (auto handler = proxy_.Find(exchange)) return handler;
  return openapi_->Find(exchange, proxy_.options());
}

APIServices Aggregator::services() const {
  std::lock_guard lock(mutex_);
  return api_services_;
}

std::vector<std::string> Aggregator::ListedPaths() const {
  std::vector<std::string> paths;
  const APIServices all = services();
  for (auto at = all.begin(); at.valid(); at.Next()) {
    const APIServicePtr& service = *at;
    if (service->group.empty()) continue;  // /api is there in any case
    paths.push_back("/apis/" + service->group);
    paths.push_back(service->Path());
  }
  return paths;
}

void Aggregator::Resync(std::chrono::steady_clock::time_point now) {
  bool availability = false;
  bool documents = false;
  {
    std::lock_guard lock(mutex_);
    availability = now >= next_availability_;
    documents = now >= next_documents_;
    if (availability) next_availability_ = now + kAvailabilityResync;
    if (documents) next_documents_ = now + kDocumentsResync;
  }
  if (availability) availability_.CheckAll();
  if (!documents) return;
  discovery_->Refresh();
  openapi_->Refresh();
}

void Aggregator::Stop() {
  availability_.Stop();
  discovery_->Stop();
  openapi_->Stop();
}

}  // namespace keelson::aggregator
