#include "server/handler_chain.h"

namespace keelson::server {

http::Handler BuildHandlerChain(endpoints::Handler api, const ChainOptions& options) {
  using namespace endpoints::filters;
  // Innermost first: each line wraps what stands above it.
  endpoints::Handler handler = std::move(api);
  handler = WithAuthorization(std::move(handler), options.authorizer, *options.metrics);
  handler = WithMaxInFlightLimit(std::move(handler), options.max_requests_inflight,
                                 options.max_mutating_requests_inflight, *options.metrics);
  handler = WithImpersonation(std::move(handler), options.authorizer);
  handler = WithAuthentication(std::move(handler), options.authenticator, *options.metrics,
                               options.request_header_names, options.request_header_prefixes);
  handler = WithCORS(std::move(handler), {.allowed_origins = options.cors_allowed_origins});
  handler = WithWarningRecorder(std::move(handler));
  handler = WithTimeoutForNonLongRunningRequests(std::move(handler), *options.metrics);
  handler = WithRequestDeadline(std::move(handler), options.request_timeout);
  handler = WithWaitGroup(std::move(handler), options.requests);
  handler = WithWatchTerminationDuringShutdown(std::move(handler), options.watches);
  handler = WithProbabilisticGoaway(std::move(handler), options.goaway_chance, *options.random);
  handler = WithCacheControl(std::move(handler));
  handler = WithHSTS(std::move(handler), options.hsts_directives);
  if (options.shutdown_send_retry_after) handler = WithRetryAfter(std::move(handler), options.not_accepting);
  handler = WithHTTPLogging(std::move(handler));
  return WithContext(std::move(handler), *options.random, *options.metrics);
}

}  // namespace keelson::server
