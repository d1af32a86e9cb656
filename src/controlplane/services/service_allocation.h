// Allocation around the write of a service: families, cluster IPs and node ports are chosen and allocated before
// validation, released if the write fails, and those that the service no longer needs are released after it succeeded.
// Thread safety: all members from any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "controlplane/services/cluster_ips.h"
#include "controlplane/services/node_ports.h"
#include "registry/store.h"
#include "validation/net.h"

namespace keelson::controlplane {

// The node ports of a service, the health check's not included; a number shared by several protocols once.
std::vector<int> ServiceNodePorts(Value service);

class ServiceAllocation {
 public:
  // `families`: IPv4, IPv6 in the order of --service-cluster-ip-range.
  ServiceAllocation(std::vector<std::string_view> families, std::shared_ptr<ClusterIPs> ips,
                    std::shared_ptr<NodePorts> ports,
                    validation::AddressRules address_rules = validation::AddressRules::kStrict)
      : families_(std::move(families)), ips_(std::move(ips)), ports_(std::move(ports)), address_rules_(address_rules) {}

  using Finish = registry::Store::Options::Finish;
  registry::Task<Finish> BeginWrite(request::Context& context, Value service, Value old, bool dry_run);
  Awaitable<void> ReleaseAll(Value service);

 private:
  struct Plan;
  registry::Task<void> AllocateIPs(base::Arena& arena, Value service, std::size_t first, Plan& plan) const;
  registry::Task<void> ChangeIPs(base::Arena& arena, Value service, Value old, Plan& plan) const;
  registry::Task<void> ChangePorts(base::Arena& arena, Value service, Value old, Plan& plan) const;
  Awaitable<void> Release(std::vector<std::string> ips, std::vector<int> ports) const;

  std::vector<std::string_view> families_;
  std::shared_ptr<ClusterIPs> ips_;
  std::shared_ptr<NodePorts> ports_;
  validation::AddressRules address_rules_;
};

}  // namespace keelson::controlplane
