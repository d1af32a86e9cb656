// State of one request while it is served. Created by the first filter, filled in by the others, destroyed with the
// request. Thread safety: the request's own coroutine; it outlives every view into it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "async/cancellation.h"
#include "base/arena.h"
#include "base/clock.h"
#include "request/audit_annotations.h"
#include "request/request_info.h"
#include "request/user.h"
#include "request/warnings.h"
#include "telemetry/span.h"

namespace keelson::request {

struct Context {
  base::Arena arena;  // the objects of this request
  RequestInfo info;
  SharedUser user;                       // after authentication (and impersonation)
  SharedUser impersonator;               // the user who impersonates `user`; none without impersonation
  std::string impersonation_constraint;  // impersonate:<mode>; "" of the legacy mode
  std::string audit_id;
  std::string user_agent;
  std::string remote_address;
  base::Clock::SteadyTime received{};
  std::optional<base::Clock::SteadyTime> deadline;  // none for long-running requests
  // Set when the client has gone or the deadline has passed: waits and calls out end. Null: never (internal requests,
  // watches, whose stream ends with the connection).
  async::CancellationPtr cancellation;
  Warnings warnings;
  AuditAnnotations audit_annotations;
  std::shared_ptr<telemetry::Trace> trace;  // null: nothing is recorded, and no trace context is propagated
  telemetry::Span span;                     // the parent of spans that begin now
  telemetry::LatencyTrackers latencies;

  // Identifies the request to lower layers. It must not outlive the context.
  telemetry::Caller caller() { return {span, &latencies}; }
};

}  // namespace keelson::request
