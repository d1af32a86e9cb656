// GET /console/api/audit: audit events as they happen, one JSON object a line, first those that are still kept. Query:
// user, verb and resource, each exact or empty. Authorized as the non-resource URL that it is.
#pragma once

#include <memory>

#include "audit/tail.h"
#include "server/path_mux.h"

namespace keelson::console {

void InstallAudit(server::PathMux& mux, std::shared_ptr<audit::Tail> tail);

}  // namespace keelson::console
