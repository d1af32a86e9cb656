// The filters that record audit events of requests (upstream's WithAudit and its failed-request forms).
#pragma once

#include <memory>

#include "audit/auditor.h"
#include "endpoints/exchange.h"
#include "meta/status.h"

namespace keelson::endpoints::filters {

// Around all others: makes the auditor known to FailedRequest(). `auditor` may be null.
Handler WithAuditInit(Handler next, std::shared_ptr<audit::Auditor> auditor);
// Behind authentication, before impersonation.
Handler WithAudit(Handler next, std::shared_ptr<audit::Auditor> auditor);
// The answer to a request that ends before WithAudit (no credentials, a bad ?timeout=), with its one event.
http::Response FailedRequest(Exchange& exchange, const meta::Status& status);

}  // namespace keelson::endpoints::filters
