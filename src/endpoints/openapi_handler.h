// Puts an OpenAPIService behind HTTP: register it for /openapi/v2, /openapi/v3 and everything below /openapi/v3/.
#pragma once

#include <memory>

#include "base/clock.h"
#include "endpoints/exchange.h"
#include "endpoints/openapi_service.h"

namespace keelson::endpoints {

// GET and HEAD; 405 for the rest. `clock` must outlive the handler.
Handler OpenAPIHandler(std::shared_ptr<const OpenAPIService> service, const base::Clock& clock);

}  // namespace keelson::endpoints
