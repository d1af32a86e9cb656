// The audit of the server, made from the options. Called once at the start.
#pragma once

#include <memory>

#include "app/error.h"
#include "app/options.h"
#include "async/io_pool.h"
#include "audit/auditor.h"
#include "base/outcome.h"
#include "http/transport.h"
#include "net/dialer.h"
#include "telemetry/metrics.h"

namespace keelson::app {

// Null where no policy or no backend is given, and no `tail`; the policy file is read and checked all the same.
// `metrics` must outlive the auditor. `io` must outlive the auditor's Shutdown(). `transport` and `dialer` are those of
// the webhook; a null dialer: direct.
Outcome<std::shared_ptr<audit::Auditor>, Error> MakeAuditor(const AuditOptions& options, async::IOPool& io,
                                                            std::shared_ptr<http::Transport> transport,
                                                            net::DialerPtr dialer, telemetry::MetricsRegistry& metrics,
                                                            std::shared_ptr<audit::Tail> tail);

}  // namespace keelson::app
