#include "server/handler_chain.h"

#include "endpoints/filters/large_bodies.h"

namespace keelson::server {
namespace {

std::vector<endpoints::filters::ResponseFilter> ResponseFilters(const ChainOptions& options) {
  using namespace endpoints::filters;
  std::vector<ResponseFilter> filters;
  if (options.goaway_chance > 0) filters.push_back(ProbabilisticGoaway(options.goaway_chance, *options.random));
  filters.push_back(CacheControl());
  if (!options.hsts_directives.empty()) filters.push_back(HSTS(options.hsts_directives));
  return filters;
}

}  // namespace

http::Handler BuildHandlerChain(endpoints::Handler api, const ChainOptions& options) {
  using namespace endpoints::filters;
  // Innermost first: each line wraps the handler above it.
  endpoints::Handler handler = std::move(api);
  if (options.storage_versions) handler = WithStorageVersionPrecondition(std::move(handler), options.storage_versions);
  if (options.large_bodies != nullptr) handler = WithLargeBodiesElsewhere(std::move(handler), *options.large_bodies);
  handler = WithAuthorization(std::move(handler), options.authorizer, *options.metrics);
  if (options.priority_and_fairness) {
    handler = WithPriorityAndFairness(std::move(handler), *options.priority_and_fairness, *options.metrics);
  } else {
    handler = WithMaxInFlightLimit(std::move(handler), options.max_requests_inflight,
                                   options.max_mutating_requests_inflight, *options.metrics);
  }
  using Modes = Impersonator::Modes;
  handler = WithImpersonation(
      std::move(handler),
      std::make_shared<Impersonator>(options.authorizer,
                                     options.constrained_impersonation ? Modes::kConstrained : Modes::kLegacy,
                                     options.impersonation_metrics));
  handler = WithAudit(std::move(handler), options.auditor);
  handler = WithTracing(std::move(handler));
  handler = WithAuthentication(std::move(handler),
                               {.authenticator = options.authenticator,
                                .api_audiences = options.api_audiences,
                                .header_names = options.request_header_names,
                                .header_prefixes = options.request_header_prefixes},
                               *options.metrics);
  handler = WithCORS(std::move(handler), {.allowed_origins = options.cors_allowed_origins});
  handler = WithTimeoutAndWarnings(std::move(handler), *options.metrics);
  handler = WithRequestDeadline(std::move(handler), options.request_timeout);
  handler = WithWaitGroup(std::move(handler), options.requests);
  handler = WithWatchTerminationDuringShutdown(std::move(handler), options.watches);
  handler = WithResponseFilters(std::move(handler), ResponseFilters(options));
  if (options.shutdown_send_retry_after) handler = WithRetryAfter(std::move(handler), options.not_accepting);
  handler = WithAuditInit(std::move(handler), options.auditor);
  return WithContext(std::move(handler), *options.random, *options.metrics, options.running, options.tracing);
}

}  // namespace keelson::server
