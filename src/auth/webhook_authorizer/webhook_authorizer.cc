#include "auth/webhook_authorizer/webhook_authorizer.h"

#include "telemetry/log.h"

namespace keelson::auth {
namespace {

Authorization DecisionOf(const ReviewStatus& status) {
  if (status.denied && status.allowed) {
    return {.decision = Decision::kDeny,
            .reason = status.reason,
            .error = "webhook subject access review returned both allow and deny response"};
  }
  const Decision decision = status.denied ? Decision::kDeny : status.allowed ? Decision::kAllow : Decision::kNoOpinion;
  return {.decision = decision, .reason = status.reason};
}

std::string_view ResultName(CallResult result) {
  constexpr std::string_view kNames[] = {"success", "canceled", "timeout", "error"};
  return kNames[static_cast<std::size_t>(result)];
}

double SecondsSince(const base::Clock& clock, base::Clock::SteadyTime start) {
  return std::chrono::duration<double>(clock.Monotonic() - start).count();
}

}  // namespace

WebhookAuthorizerMetrics::WebhookAuthorizerMetrics(telemetry::MetricsRegistry& registry)
    : evaluations_(registry.Counters({.name = "apiserver_authorization_webhook_evaluations_total",
                                      .help = "Round-trips to authorization webhooks.",
                                      .stability = telemetry::Stability::kAlpha,
                                      .labels = {"name", "result"}})),
      duration_(registry.Histograms({.name = "apiserver_authorization_webhook_duration_seconds",
                                     .help = "Request latency in seconds.",
                                     .stability = telemetry::Stability::kAlpha,
                                     .labels = {"name", "result"},
                                     .buckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}})),
      fail_open_(registry.Counters({.name = "apiserver_authorization_webhook_evaluations_fail_open_total",
                                    .help = "NoOpinion results due to webhook timeout or error.",
                                    .stability = telemetry::Stability::kAlpha,
                                    .labels = {"name", "result"}})),
      exclusions_(registry.Counters({.name = "apiserver_authorization_match_condition_exclusions_total",
                                     .help = "Total number of exclusions when an authorization webhook is skipped "
                                             "because match conditions exclude it.",
                                     .stability = telemetry::Stability::kAlpha,
                                     .labels = {"name", "type"}})),
      match_errors_(registry.Counters({.name = "apiserver_authorization_match_condition_evaluation_errors_total",
                                       .help = "Total number of errors when an authorization webhook encounters a "
                                               "match condition error split by authorizer type and name.",
                                       .stability = telemetry::Stability::kAlpha,
                                       .labels = {"name", "type"}})),
      match_seconds_(registry.Histograms(
          {.name = "apiserver_authorization_match_condition_evaluation_seconds",
           .help = "Authorization match condition evaluation time in seconds, split by authorizer type and name.",
           .stability = telemetry::Stability::kAlpha,
           .labels = {"name", "type"},
           .buckets = {0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}})) {}

void WebhookAuthorizerMetrics::Evaluated(std::string_view name, CallResult result, double seconds) {
  evaluations_.With({name, ResultName(result)}).Inc();
  duration_.With({name, ResultName(result)}).Observe(seconds);
}
void WebhookAuthorizerMetrics::FailedOpen(std::string_view name, CallResult result) {
  fail_open_.With({name, ResultName(result)}).Inc();
}
void WebhookAuthorizerMetrics::MatchConditionExcluded(std::string_view name) {
  exclusions_.With({name, "Webhook"}).Inc();
}
void WebhookAuthorizerMetrics::MatchConditionFailed(std::string_view name) {
  match_errors_.With({name, "Webhook"}).Inc();
}
void WebhookAuthorizerMetrics::MatchConditionsEvaluated(std::string_view name, double seconds) {
  match_seconds_.With({name, "Webhook"}).Observe(seconds);
}

std::optional<ReviewStatus> WebhookAuthorizer::Find(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = cache_.find(key);
  if (found == cache_.end()) return std::nullopt;
  if (found->second.expires <= options_.clock->Monotonic()) {
    by_use_.erase(found->second.used);
    cache_.erase(found);
    return std::nullopt;
  }
  by_use_.splice(by_use_.begin(), by_use_, found->second.used);
  return found->second.status;
}

void WebhookAuthorizer::Remember(const std::string& key, const ReviewStatus& status) {
  const auto ttl = status.allowed ? options_.authorized_ttl : options_.unauthorized_ttl;
  if (ttl <= std::chrono::nanoseconds(0)) return;
  const std::scoped_lock lock(mutex_);
  const auto [place, added] = cache_.try_emplace(key);
  if (added) {
    by_use_.push_front(&place->first);
    place->second.used = by_use_.begin();
  }
  place->second.status = status;
  place->second.expires = options_.clock->Monotonic() + ttl;
  if (cache_.size() <= kCacheEntriesMax) return;
  const std::string oldest = *by_use_.back();
  by_use_.pop_back();
  cache_.erase(oldest);
}

// The answer where no call is needed; else the key to cache the call's answer under.
std::optional<Authorization> WebhookAuthorizer::Prepare(const Attributes& attributes, std::string& key) {
  if (options_.match) {
    const auto start = options_.clock->Monotonic();
    const auto matches = options_.match(attributes);
    if (options_.metrics)
      options_.metrics->MatchConditionsEvaluated(options_.name, SecondsSince(*options_.clock, start));
    if (!matches.ok()) {
      if (options_.metrics) options_.metrics->MatchConditionFailed(options_.name);
      return Authorization{.decision = options_.decision_on_error, .error = matches.error()};
    }
    if (!*matches) {
      if (options_.metrics) options_.metrics->MatchConditionExcluded(options_.name);
      return Authorization{};
    }
  }
  key = ReviewSpec(attributes);
  if (const auto status = Find(key)) return DecisionOf(*status);
  return std::nullopt;
}

Awaitable<Authorization> WebhookAuthorizer::Authorize(const Attributes& attributes) {
  std::string key;
  if (auto answer = Prepare(attributes, key)) co_return *std::move(answer);
  std::string body = ReviewBody(attributes, options_.version);
  Answer answer = co_await options_.call(std::move(body), attributes.cancellation);
  if (answer.result == CallResult::kSuccess) {
    if (IsCacheable(attributes)) Remember(key, answer.status);
    co_return DecisionOf(answer.status);
  }
  log::Error("Failed to make webhook authorizer request", "webhook", options_.name, "err", answer.error);
  const bool canceled = attributes.cancellation != nullptr && attributes.cancellation->cancelled();
  if (options_.decision_on_error == Decision::kNoOpinion && !canceled && options_.metrics)
    options_.metrics->FailedOpen(options_.name, answer.result);
  co_return Authorization{.decision = options_.decision_on_error, .error = answer.error};
}

ResolvedRules WebhookAuthorizer::RulesFor(const request::User&, std::string_view) const {
  return {.incomplete = true, .errors = {"webhook authorizer does not support user rule resolution"}};
}

}  // namespace keelson::auth
