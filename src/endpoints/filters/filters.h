// The filters of the handler chain, by upstream's names, each wrapping the next. Their order is the server's business
// (server/handler_chain.cc). A filter that is not built is absent, never a pass-through.
// A filter that waits for something, or that has work to do after the next one, calls a coroutine with a reference to
// the next handler: the chain outlives every request that runs through it. The others are plain functions, which a
// request passes without a coroutine frame.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "auth/authenticator.h"
#include "auth/authorizer.h"
#include "base/clock.h"
#include "base/random.h"
#include "endpoints/exchange.h"
#include "endpoints/filters/tracing.h"
#include "endpoints/request_metrics.h"
#include "endpoints/running_requests.h"

namespace keelson::endpoints::filters {

// Outermost: the audit ID, RequestInfo and the context, the line of the request in the log (-v=3), and 500 for
// exceptions of inner handlers. `running`, if given, lists the request while its handler runs.
http::Handler WithContext(Handler next, base::Random& random, RequestMetrics& metrics,
                          RunningRequests* running = nullptr, TracingOptions tracing = {});

// Filters that only change the response (upstream's WithHSTS, WithCacheControl, WithProbabilisticGoaway), run one after
// the other in one coroutine.
using ResponseFilter = std::function<void(const Exchange& exchange, http::Response& response)>;
Handler WithResponseFilters(Handler next, std::vector<ResponseFilter> filters);
ResponseFilter HSTS(const std::vector<std::string>& directives);
ResponseFilter CacheControl();
// On HTTP/2, sends GOAWAY with this probability, so that clients reconnect and load spreads over servers.
ResponseFilter ProbabilisticGoaway(double chance, base::Random& random);

// Counts requests that are being served, so that shutdown can wait for them; refuses new ones once it is closing.
class RequestGroup {
 public:
  RequestGroup();
  std::shared_ptr<void> Enter();  // the request is inside while a copy of this is left; null once closing
  void Close();                   // from now on Enter() fails
  std::size_t count() const;
  void OnEmpty(std::function<void()> callback);  // when closing and no request is inside; any thread

 private:
  struct End;
  const std::shared_ptr<End> end_;
  mutable std::mutex mutex_;
  std::shared_ptr<void> inside_;  // guarded by mutex_; shared by the requests, null once closing
  const std::weak_ptr<void> requests_;
};
Handler WithWaitGroup(Handler next, std::shared_ptr<RequestGroup> group);
// Makes watches known to `group`, which a shutdown ends in an orderly way, and refuses new ones once it does.
Handler WithWatchTerminationDuringShutdown(Handler next, std::shared_ptr<WatchGroup> group);
// --shutdown-send-retry-after: once `not_accepting`, new requests get 429 with Retry-After.
Handler WithRetryAfter(Handler next, std::shared_ptr<std::atomic<bool>> not_accepting);

// Sets the deadline from ?timeout= and --request-timeout; 400 for a timeout that does not parse.
Handler WithRequestDeadline(Handler next, std::chrono::nanoseconds timeout);
// Upstream's WithTimeoutForNonLongRunningRequests around its WithWarningRecorder, in one coroutine: answers 504 when
// the deadline passes first (the handler continues detached), and adds the Warning headers to the response of
// `next`.
Handler WithTimeoutAndWarnings(Handler next, RequestMetrics& metrics);

struct CORSOptions {
  std::vector<std::string> allowed_origins;  // patterns in the syntax of Go's regexp
};
Handler WithCORS(Handler next, const CORSOptions& options);

// Credentials end here: Authorization, upstream's X-Remote- headers, and those of these names and prefixes are removed.
struct AuthenticationOptions {
  std::shared_ptr<auth::Authenticator> authenticator;
  std::vector<std::string> api_audiences;
  std::vector<std::string> header_names, header_prefixes;
};
Handler WithAuthentication(Handler next, AuthenticationOptions options, RequestMetrics& metrics);
class Impersonator;  // endpoints/filters/impersonation.h
Handler WithImpersonation(Handler next, std::shared_ptr<Impersonator> impersonator);
Handler WithAuthorization(Handler next, std::shared_ptr<auth::Authorizer> authorizer, RequestMetrics& metrics);

// Without priority and fairness: a limit on what runs at once, apart for reads and writes. 0: no limit.
Handler WithMaxInFlightLimit(Handler next, int non_mutating_max, int mutating_max, RequestMetrics& metrics);

}  // namespace keelson::endpoints::filters
