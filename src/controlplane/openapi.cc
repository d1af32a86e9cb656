#include "controlplane/openapi.h"

#include "apidocs/openapi_service.h"
#include "base/clock.h"
#include "controlplane/served_groups.h"
#include "endpoints/openapi_handler.h"

namespace keelson::controlplane {

void InstallOpenAPI(server::GenericAPIServer& server, std::shared_ptr<const apidocs::DiscoverySource> source) {
  const ServedGroups served(server);
  auto service =
      std::make_shared<const apidocs::OpenAPIService>(served.groups(), served.is_served(), std::move(source));
  const endpoints::Handler handler = endpoints::OpenAPIHandler(std::move(service), base::Clock::Real());
  server.mux().Handle("/openapi/v2", handler);
  server.mux().Handle("/openapi/v3", handler);
  server.mux().HandlePrefix("/openapi/v3/", handler);
}

}  // namespace keelson::controlplane
