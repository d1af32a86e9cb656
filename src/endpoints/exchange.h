// One request on its way through the handler chain: the HTTP message and what has been found out about it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string_view>

#include "async/awaitable.h"
#include "base/url.h"
#include "endpoints/request_trace.h"
#include "endpoints/watch_group.h"
#include "http/message.h"
#include "request/context.h"

namespace keelson::audit {
class Auditor;       // audit/auditor.h
class RequestAudit;  // audit/auditor.h
}  // namespace keelson::audit

namespace keelson::endpoints {

class RequestMetrics;  // endpoints/request_metrics.h

struct Exchange {
  http::Request http;
  request::Context context;
  base::Query query;
  RequestTrace trace;
  std::shared_ptr<audit::Auditor> auditor;     // null: the server has no audit policy
  std::shared_ptr<audit::RequestAudit> audit;  // null: this request is not audited
  RequestMetrics* metrics = nullptr;           // outlives every request; may be null
  std::shared_ptr<WatchGroup> watches;         // which a watch joins; may be null
  std::shared_ptr<void> in_group;              // its end leaves the group of requests that a shutdown waits for
  std::atomic<bool> routed = false;            // a resource's route took it: its labels are from a closed set
  bool allow_gzip = true;                      // large answers may be compressed
  std::string_view create_forbidden;           // why admission refuses to create objects now; "": it does not
  bool relayed = false;                        // the answer is a backend's, header by header: none is added
  bool allow_cbor = false;                     // errors may be sent as CBOR: set once the resource is resolved
};

// Shared: after its deadline a handler continues without a waiting client.
using ExchangePtr = std::shared_ptr<Exchange>;
using Handler = std::function<Awaitable<http::Response>(ExchangePtr)>;

}  // namespace keelson::endpoints
