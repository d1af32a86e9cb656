// The aggregator put to work: informers that feed it, conditions and custom resources' APIServices that are written for
// it, its certificate.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/aggregator.h"
#include "app/error.h"
#include "app/followed_files.h"
#include "app/options.h"
#include "async/event.h"
#include "async/gate.h"
#include "controlplane/informer.h"
#include "controlplane/resource_storage.h"
#include "server/generic_api_server.h"
#include "server/health.h"

namespace keelson::app {

// Thread safety: the owner's; callbacks from any thread.
class Aggregation {
 public:
  // `io` and `metrics` must outlive it. `custom` may be null.
  static Outcome<std::unique_ptr<Aggregation>, Error> New(const ExtraOptions& options, async::IOPool& io,
                                                          telemetry::MetricsRegistry& metrics,
                                                          std::shared_ptr<const apidocs::DiscoverySource> custom,
                                                          net::DialerPtr cluster_dialer, FollowedFiles& followed);
  ~Aggregation();

  aggregator::Aggregator& aggregator() { return *aggregator_; }
  // Adds informers and the handler that runs before every request. Call before serving, once the chain has its storage,
  // which must outlive this. `before` (may be empty) runs before the aggregator's handler.
  void Install(server::GenericAPIServer& chain, controlplane::ResourceStorage& storage,
               server::GenericAPIServer::Preemption before);
  void AddHealthChecks(server::HealthChecks& health);
  void Start(async::IOPool& io);
  void Tick();  // every now and then
  bool HasSynced() const;
  void Stop();

 private:
  explicit Aggregation(async::IOPool& io);
  void Watch(controlplane::ResourceStorage& storage);
  void OnDefinitions(std::vector<controlplane::Informer::Change>& changes);
  void OnAPIServices(std::vector<controlplane::Informer::Change>& changes);
  // Creates, repairs or deletes the APIService of a custom group version.
  void Reconcile(std::set<std::string> names);
  static Awaitable<void> ReconcileAll(Aggregation* self, std::set<std::string> names, async::Gate::Entry entry);
  Awaitable<void> ReconcileOne(std::string name);
  std::string MissingAPIServices() const;

  using GroupVersion = std::pair<std::string, std::string>;
  async::IOPool& io_;
  std::shared_ptr<registry::Store> store_;  // of APIServices
  std::unique_ptr<aggregator::Aggregator> aggregator_;
  std::vector<std::unique_ptr<controlplane::Informer>> informers_;
  async::Gate gate_;
  std::shared_ptr<async::Event> synced_ = std::make_shared<async::Event>();
  mutable std::mutex mutex_;
  bool registering_ = false;                                      // all informers have synced
  std::map<std::string, std::vector<GroupVersion>> definitions_;  // by CRD: what it serves
  std::map<std::string, std::multiset<GroupVersion>> wanted_;     // by APIService: the owners that want it
  std::vector<std::string> built_in_;                             // APIServices of the server's own group versions
};

}  // namespace keelson::app
