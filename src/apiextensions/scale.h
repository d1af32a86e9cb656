// The scale subresource of a custom resource: replicas at the paths that its definition names, as autoscaling/v1 Scale.
#pragma once

#include <optional>

#include "apiextensions/custom_kind.h"
#include "endpoints/scope.h"

namespace keelson::apiextensions {

// get, update and patch; 405 for other verbs. `scope` is that of the subresource.
Awaitable<std::optional<http::Response>> ServeScale(CustomKindPtr kind, VersionKindPtr version,
                                                    endpoints::ScopePtr scope, endpoints::ExchangePtr exchange);

}  // namespace keelson::apiextensions
