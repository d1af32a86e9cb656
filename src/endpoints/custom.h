// POST of resources that are answered instead of stored (reviews, bindings, evictions, token requests).
#pragma once

#include <functional>

#include "endpoints/api_group_version.h"
#include "endpoints/handlers.h"
#include "endpoints/scope.h"

namespace keelson::endpoints {

// Decodes, validates metadata and options as every create does, answers 201 with what `reviewer` returns; its kind may
// differ from the scope's (Status after an eviction).
ScopeHandler NewCreater(std::shared_ptr<const registry::Reviewer> reviewer);

// A response with a Value in the negotiated representation.
http::Response ValueResponse(const Exchange& exchange, const MediaTypeOptions& media, Value object,
                             const schema::Struct& type, int code);

}  // namespace keelson::endpoints
