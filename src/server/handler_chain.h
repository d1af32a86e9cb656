// The handler chain around a server, outermost first, in upstream's order (DefaultBuildHandlerChain).
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/io_pool.h"
#include "auth/authenticator.h"
#include "auth/authorizer.h"
#include "base/random.h"
#include "endpoints/exchange.h"
#include "endpoints/filters/audit.h"
#include "endpoints/filters/filters.h"
#include "endpoints/filters/impersonation.h"
#include "endpoints/filters/priority_and_fairness.h"
#include "endpoints/filters/storage_version.h"
#include "endpoints/filters/tracing.h"
#include "endpoints/request_metrics.h"

namespace keelson::server {

struct ChainOptions {
  std::shared_ptr<auth::Authenticator> authenticator;
  std::vector<std::string> api_audiences;                                  // a credential for others is refused
  std::vector<std::string> request_header_names, request_header_prefixes;  // configured ones: not for handlers to see
  std::shared_ptr<auth::Authorizer> authorizer;
  bool constrained_impersonation = true;                                      // the gate ConstrainedImpersonation
  endpoints::filters::ImpersonationMetrics* impersonation_metrics = nullptr;  // must outlive the chain
  std::shared_ptr<audit::Auditor> auditor;                                    // null: no audit
  endpoints::filters::TracingOptions tracing;
  std::shared_ptr<const endpoints::filters::StorageVersionBarrier> storage_versions;  // null: no such barrier
  std::chrono::nanoseconds request_timeout = std::chrono::minutes(1);
  // None: --enable-priority-and-fairness=false, and the limits on requests in flight apply instead.
  std::optional<endpoints::filters::PriorityAndFairness> priority_and_fairness;
  int max_requests_inflight = 400;
  int max_mutating_requests_inflight = 200;
  double goaway_chance = 0;
  std::vector<std::string> hsts_directives;
  std::vector<std::string> cors_allowed_origins;
  bool shutdown_send_retry_after = false;
  std::shared_ptr<std::atomic<bool>> not_accepting;            // for shutdown_send_retry_after
  std::shared_ptr<endpoints::filters::RequestGroup> requests;  // non-long-running ones
  std::shared_ptr<endpoints::WatchGroup> watches;
  endpoints::RequestMetrics* metrics = nullptr;   // must outlive the chain
  endpoints::RunningRequests* running = nullptr;  // the same; null: not recorded
  async::IOPool* large_bodies = nullptr;          // where requests with large bodies run; null: like all others
  base::Random* random = &base::Random::Real();
};

http::Handler BuildHandlerChain(endpoints::Handler api, const ChainOptions& options);

}  // namespace keelson::server
