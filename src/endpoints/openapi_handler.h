// Puts an apidocs::OpenAPIService behind HTTP: register it for /openapi/v2, /openapi/v3 and everything below
// /openapi/v3/.
#pragma once

#include <memory>

#include "apidocs/openapi_service.h"
#include "base/clock.h"
#include "endpoints/exchange.h"

namespace keelson::endpoints {

// GET and HEAD; 405 for the rest. `clock` must outlive the handler.
Handler OpenAPIHandler(std::shared_ptr<const apidocs::OpenAPIService> service, const base::Clock& clock);

}  // namespace keelson::endpoints
