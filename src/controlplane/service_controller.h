// Services' addresses and ports in a running server: puts the allocators around writes of services, keeps them
// informed, makes the default ServiceCIDR and the service kubernetes, and repairs what does not fit, at start and then
// regularly. Thread safety: the owner's thread, but for what it installs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/event.h"
#include "controlplane/informer.h"
#include "controlplane/resource_storage.h"
#include "controlplane/services/service_allocation.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

struct ServiceOptions {
  std::vector<std::string> cidrs;  // --service-cluster-ip-range: primary, secondary
  PortRange node_ports;
  std::string kubernetes_ip;  // of the service kubernetes
  std::int64_t secure_port = 6443;
  std::int64_t kubernetes_node_port = 0;  // 0: it is a ClusterIP service
  std::string etcd_prefix = "/registry";
  validation::AddressRules address_rules = validation::AddressRules::kStrict;
};

class ServiceController {
 public:
  ServiceController(kv::Store& kv, ServiceOptions options);
  ~ServiceController();  // Stop()

  // For StorageConfig::customize.
  void Customize(registry::Store::Options& options);
  // Once all stores are made. `storage` must outlive this.
  void Install(server::GenericAPIServer& server, ResourceStorage& storage);
  void Start(async::IOPool& io);
  void Stop();
  bool HasSynced() const;

 private:
  Awaitable<void> SyncServiceCIDR();
  Awaitable<void> SyncKubernetesService();
  // Post-start hooks.
  Awaitable<void> RepairAtStart();
  Awaitable<void> SyncKubernetesServiceAtStart();
  // Deletes the service's endpoints and gives its addresses and ports back.
  Awaitable<void> AfterDelete(Value service);
  Awaitable<std::string> Repair();
  Awaitable<std::string> RepairAddresses();
  Awaitable<std::string> RepairService(Value service);
  Awaitable<std::string> RepairAddress(Value address);
  Awaitable<void> WaitUntilReady();
  Awaitable<void> Run();

  ServiceOptions options_;
  class StoredAddresses;
  std::shared_ptr<StoredAddresses> addresses_;
  std::shared_ptr<ClusterIPs> ips_;
  std::shared_ptr<NodePorts> ports_;
  std::shared_ptr<ServiceAllocation> allocation_;
  std::shared_ptr<registry::Store> services_, endpoints_, service_cidrs_, ip_addresses_;
  std::vector<std::unique_ptr<Informer>> informers_;
  std::atomic<bool> default_ready_{false}, stopping_{false}, repaired_{false};
  async::Event wake_;
  std::future<void> done_;
};

}  // namespace keelson::controlplane
