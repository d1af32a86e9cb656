// Turns a service reference into an address to dial. Implemented by the aggregator over Services and EndpointSlices.
#pragma once

#include <cstdint>
#include <string>

#include "base/outcome.h"

namespace keelson::webhook {

struct ServiceEndpoint {
  std::string host;  // an address or, for ExternalName services, a name
  std::uint16_t port = 0;
};

// Thread safety: from any thread; must not block.
class ServiceResolver {
 public:
  virtual ~ServiceResolver() = default;
  // The error is upstream's text: `service "x" not found`, `no service port 443 found for service "x"`.
  virtual Outcome<ServiceEndpoint, std::string> ResolveEndpoint(const std::string& name_space, const std::string& name,
                                                                std::int32_t port) = 0;
};

// upstream's default: the name `<name>.<namespace>.svc`, left to DNS.
class DefaultServiceResolver final : public ServiceResolver {
 public:
  Outcome<ServiceEndpoint, std::string> ResolveEndpoint(const std::string& name_space, const std::string& name,
                                                        std::int32_t port) override;
};

}  // namespace keelson::webhook
