// The authorizer of --authorization-mode=Webhook and of the Webhook entries of an AuthorizationConfiguration.
// Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "auth/authorizer.h"
#include "auth/webhook_authorizer/subject_access_review.h"
#include "base/clock.h"
#include "telemetry/metrics.h"

namespace keelson::auth {

// The label `result` of the webhook metrics. kError: the answer was complete and invalid, or the call failed otherwise.
enum class CallResult : std::uint8_t { kSuccess, kCanceled, kTimeout, kError };

// Metrics shared by all webhooks, by name.
class WebhookAuthorizerMetrics {
 public:
  explicit WebhookAuthorizerMetrics(telemetry::MetricsRegistry& registry);
  void Evaluated(std::string_view name, CallResult result, double seconds);  // one attempt
  void FailedOpen(std::string_view name, CallResult result);
  void MatchConditionExcluded(std::string_view name);
  void MatchConditionFailed(std::string_view name);
  void MatchConditionsEvaluated(std::string_view name, double seconds);

 private:
  telemetry::MetricVec<telemetry::Counter>& evaluations_;
  telemetry::MetricVec<telemetry::Histogram>& duration_;
  telemetry::MetricVec<telemetry::Counter>& fail_open_;
  telemetry::MetricVec<telemetry::Counter>& exclusions_;
  telemetry::MetricVec<telemetry::Counter>& match_errors_;
  telemetry::MetricVec<telemetry::Histogram>& match_seconds_;
};

class WebhookAuthorizer final : public Authorizer, public RuleResolver {
 public:
  struct Answer {
    CallResult result = CallResult::kSuccess;
    ReviewStatus status;  // of a call that succeeded
    std::string error;    // of one that did not
  };
  // Sends a review, with retries, and reads the answer. The call belongs to one request and ends with "context
  // canceled" when the request does.
  using Call = std::function<Awaitable<Answer>(std::string body, async::CancellationPtr cancellation)>;
  // Whether to call the webhook; the error is a match condition's.
  using Match = std::function<Outcome<bool, std::string>(const Attributes& attributes)>;

  struct Options {
    std::string name;
    ReviewVersion version = ReviewVersion::kV1;
    Call call;
    Match match;  // empty: every request matches
    Decision decision_on_error = Decision::kNoOpinion;
    std::chrono::nanoseconds authorized_ttl{0};  // zero: not cached
    std::chrono::nanoseconds unauthorized_ttl{0};
    const base::Clock* clock = &base::Clock::Real();
    std::shared_ptr<WebhookAuthorizerMetrics> metrics;  // may be null
  };
  explicit WebhookAuthorizer(Options options) : options_(std::move(options)) {}

  Awaitable<Authorization> Authorize(const Attributes& attributes) override;
  // Never: match conditions are evaluated (and counted) once per request, in Authorize().
  std::optional<Authorization> TryAuthorize(const Attributes&) override { return std::nullopt; }
  ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override;

  static constexpr std::size_t kCacheEntriesMax = 8192;

 private:
  struct Entry {
    ReviewStatus status;
    base::Clock::SteadyTime expires;
    std::list<const std::string*>::iterator used;
  };
  std::optional<Authorization> Prepare(const Attributes& attributes, std::string& key);
  std::optional<ReviewStatus> Find(const std::string& key);
  void Remember(const std::string& key, const ReviewStatus& status);

  Options options_;
  std::mutex mutex_;                      // guards the cache; never held across a call
  std::map<std::string, Entry> cache_;    // ordered: keys are the clients', and hashes could be made to collide
  std::list<const std::string*> by_use_;  // the latest first
};

}  // namespace keelson::auth
