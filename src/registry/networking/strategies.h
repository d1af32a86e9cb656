// networking.k8s.io: NetworkPolicy, Ingress, IngressClass, IPAddress, ServiceCIDR.
#pragma once

#include <span>

#include "registry/strategy.h"

namespace keelson::registry {

std::span<const Strategy> NetworkingStrategies();

// The parts, one file each.
extern const Strategy kNetworkPolicyStrategy;
extern const Strategy kIngressStrategy;
extern const Strategy kIngressClassStrategy;
extern const Strategy kIPAddressStrategy;
extern const Strategy kServiceCIDRStrategy;

}  // namespace keelson::registry
