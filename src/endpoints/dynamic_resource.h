// Requests for resources that come and go: served by the verb of the request, as upstream's crdHandler does, instead of
// by routes.
#pragma once

#include <optional>
#include <variant>

#include "endpoints/scope.h"

namespace keelson::endpoints {

// The target of a request: none (the next server of the chain answers), an error, or a scope.
using Resolution = std::variant<std::monostate, meta::Status, ScopePtr>;

Awaitable<std::optional<http::Response>> ServeResolved(Resolution resolution, ExchangePtr exchange);

}  // namespace keelson::endpoints
