// Handlers that await nothing: pages, documents, health.
#pragma once

#include <functional>

#include "endpoints/exchange.h"

namespace keelson::endpoints {

// A handler around a plain function.
Handler Answering(std::function<http::Response(Exchange& exchange)> answer);

}  // namespace keelson::endpoints
