#include "webhook/service_resolver.h"

namespace keelson::webhook {

Outcome<ServiceEndpoint, std::string> DefaultServiceResolver::ResolveEndpoint(const std::string& name_space,
                                                                              const std::string& name,
                                                                              std::int32_t port) {
  if (name.empty() || name_space.empty() || port == 0)
    return std::string("cannot resolve an empty service name or namespace or port");
  return ServiceEndpoint{name + "." + name_space + ".svc", static_cast<std::uint16_t>(port)};
}

}  // namespace keelson::webhook
