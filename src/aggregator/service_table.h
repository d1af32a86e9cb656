// Services and their endpoints, and how a service reference becomes an address (upstream's service resolvers). Shared
// by aggregated API servers, admission webhooks and conversion webhooks. Thread safety: all members from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "object/value.h"
#include "webhook/service_resolver.h"

namespace keelson::aggregator {

enum class Routing : std::uint8_t {
  kClusterIP,  // the service's own address
  kEndpoints,  // --enable-aggregator-routing: a ready endpoint, chosen at random
};

class ServiceTable final : public webhook::ServiceResolver {
 public:
  explicit ServiceTable(Routing routing, base::Random& random = base::Random::Real())
      : routing_(routing), random_(random) {}

  // This server itself, for default/kubernetes:443.
  void SetLoopback(webhook::ServiceEndpoint endpoint);

  void OnService(std::string name_space, std::string name, const Value& object);
  void OnServiceDeleted(const std::string& name_space, const std::string& name);
  void OnEndpointSlice(const std::string& name_space, std::string name, const Value& object);
  void OnEndpointSliceDeleted(const std::string& name_space, const std::string& name);

  Outcome<webhook::ServiceEndpoint, std::string> ResolveEndpoint(const std::string& name_space, const std::string& name,
                                                                 std::int32_t port) override;

  struct Port {
    std::string name;
    std::int32_t port = 0;
  };
  struct Service {
    std::string type;
    std::string cluster_ip;
    std::string external_name;
    bool ipv6 = false;  // the preferred family
    std::vector<Port> ports;
  };
  std::optional<Service> Find(const std::string& name_space, const std::string& name) const;
  struct Endpoints {
    bool any_slice = false;
    std::vector<std::string> ports_with_addresses;  // names
  };
  Endpoints EndpointsOf(const std::string& name_space, const std::string& name) const;

 private:
  struct Slice {
    std::string service;
    bool ipv6 = false;
    std::vector<Port> ports;
    std::vector<std::string> ready;  // addresses; kept only where requests are routed to them
    bool has_addresses = false;
  };
  using Key = std::pair<std::string, std::string>;  // namespace, name

  Outcome<webhook::ServiceEndpoint, std::string> ChooseEndpoint(const Key& key, const Service& service,
                                                                const Port& port) const;
  void DropSlice(const Key& key);

  const Routing routing_;
  base::Random& random_;
  mutable std::shared_mutex mutex_;
  std::optional<webhook::ServiceEndpoint> loopback_;
  std::map<Key, Service> services_;
  std::map<Key, Slice> slices_;
  std::map<Key, std::vector<std::string>> slices_of_;  // service → names of its slices
};

}  // namespace keelson::aggregator
