// The aggregator (upstream's APIAggregator): takes objects, gives handlers and documents.
// Thread safety: all members from any thread; Stop() blocks.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "aggregator/api_service.h"
#include "aggregator/availability.h"
#include "aggregator/backend.h"
#include "aggregator/discovery.h"
#include "aggregator/openapi.h"
#include "aggregator/proxy_handler.h"
#include "aggregator/service_table.h"

namespace keelson::aggregator {

struct AggregatorOptions {
  async::IOPool* io = nullptr;  // must outlive the aggregator, as must the metrics
  telemetry::MetricsRegistry* metrics = nullptr;
  bool route_to_endpoints = false;  // --enable-aggregator-routing
  bool reject_redirects = true;     // --aggregator-reject-forwarding-redirect
  bool send_uid = true;             // gate RemoteRequestHeaderUID
  std::set<std::string> built_in_groups;
  net::DialerPtr cluster_dialer;                           // egress "cluster"
  std::shared_ptr<const apidocs::DiscoverySource> custom;  // custom resources; may be null
  // Writes the condition Available of an APIService.
  std::function<Awaitable<void>(std::string name, Condition condition)> write_condition;
};

class Aggregator {
 public:
  static constexpr std::chrono::seconds kAvailabilityResync{30};
  static constexpr std::chrono::seconds kDocumentsResync{60};

  explicit Aggregator(AggregatorOptions options);
  ~Aggregator();

  struct Change {
    std::string name;
    std::optional<APIService> service;  // empty: deleted
  };
  void OnAPIServices(std::vector<Change> changes);
  void OnService(const std::string& name_space, const std::string& name, const Value& object, bool deleted);
  void OnEndpointSlice(const std::string& name_space, const std::string& name, const Value& object, bool deleted);
  void SetClientCertificate(std::string certificate_pem, std::string key_pem);

  // The handler of a request that is not for this server's own chain.
  std::optional<endpoints::Handler> Find(const endpoints::Exchange& exchange) const;
  APIServices services() const;
  // Paths that / lists for the APIServices: of each group and of each of its versions.
  std::vector<std::string> ListedPaths() const;
  ServiceTable& resolver() { return services_; }
  const std::shared_ptr<DiscoveryAggregator>& discovery() const { return discovery_; }
  const std::shared_ptr<OpenAPIAggregator>& openapi() const { return openapi_; }

  void Resync(std::chrono::steady_clock::time_point now);  // called every second or so
  void Stop();

 private:
  // `groups`: those whose APIServices changed. `remote`: one of another server did.
  void Publish(const std::set<std::string>& groups, bool remote);

  AggregatorOptions options_;
  ServiceTable services_;
  Backends backends_;
  ProxyHandler proxy_;
  std::shared_ptr<DiscoveryAggregator> discovery_;
  std::shared_ptr<OpenAPIAggregator> openapi_;
  Availability availability_;
  mutable std::mutex mutex_;
  APIServices api_services_;
  std::map<std::string, std::set<std::string>> names_;  // of the APIServices of each group
  std::chrono::steady_clock::time_point next_availability_{};
  std::chrono::steady_clock::time_point next_documents_{};
};

}  // namespace keelson::aggregator
