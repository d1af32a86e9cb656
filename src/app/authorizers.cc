#include "app/authorizers.h"

#include <algorithm>

#include "app/authorization_webhook.h"
#include "auth/abac/policy.h"
#include "auth/oidc/metrics.h"
#include "auth/webhook_authorizer/match_conditions.h"
#include "base/clock.h"
#include "base/read_file.h"
#include "base/strings.h"
#include "telemetry/log.h"
#include "webhook/file_text.h"

namespace keelson::app {
namespace {

constexpr std::chrono::seconds kWebhookTimeout{30};

std::string Lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return text;
}

std::string MatchConditionProblem(const std::string& expression) {
  const auto compiled = auth::MatchConditions::Compile({&expression, 1});
  return compiled.ok() ? "" : compiled.error();
}

// Counts the decisions of one authorizer.
class CountedAuthorizer final : public auth::Authorizer {
 public:
  CountedAuthorizer(std::shared_ptr<auth::Authorizer> inner, telemetry::Counter& allowed, telemetry::Counter& denied)
      : inner_(std::move(inner)), allowed_(allowed), denied_(denied) {}
  Awaitable<auth::Authorization> Authorize(const auth::Attributes& attributes) override {
    auth::Authorization answer = co_await inner_->Authorize(attributes);
    Count(answer);
    co_return answer;
  }
  std::optional<auth::Authorization> TryAuthorize(const auth::Attributes& attributes) override {
    auto answer = inner_->TryAuthorize(attributes);
    if (answer) Count(*answer);
    return answer;
  }

 private:
  void Count(const auth::Authorization& answer) {
    if (answer.decision == auth::Decision::kAllow) allowed_.Inc();
    if (answer.decision == auth::Decision::kDeny) denied_.Inc();
  }
  std::shared_ptr<auth::Authorizer> inner_;
  telemetry::Counter& allowed_;
  telemetry::Counter& denied_;
};

}  // namespace

AuthorizationConfiguration ConfigurationOf(const AuthorizationOptions& options) {
  AuthorizationConfiguration config;
  for (const std::string& mode : options.modes) {
    AuthorizerEntry entry{.type = mode, .name = mode == "Webhook" ? "default" : Lower(mode)};
    if (mode == "Webhook") {
      entry.webhook = AuthorizationWebhook{.timeout = kWebhookTimeout,
                                           .authorized_ttl = options.webhook_cache_authorized_ttl,
                                           .unauthorized_ttl = options.webhook_cache_unauthorized_ttl,
                                           .review_version = options.webhook_version,
                                           .kubeconfig_file = options.webhook_config_file};
    }
    config.authorizers.push_back(std::move(entry));
  }
  return config;
}

Authorizers::Authorizers(const AuthorizationOptions& options, Parts parts)
    : policy_file_(options.policy_file),
      parts_(std::move(parts)),
      webhook_metrics_(std::make_shared<auth::WebhookAuthorizerMetrics>(*parts_.metrics)),
      decisions_(parts_.metrics->Counters(
          {.name = "apiserver_authorization_decisions_total",
           .help =
               "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
           .stability = telemetry::Stability::kAlpha,
           .labels = {"decision", "name", "type"}})),
      reloads_(parts_.metrics->Counters({.name = "apiserver_authorization_config_controller_automatic_reloads_total",
                                         .help = "Total number of automatic reloads of authorization configuration "
                                                 "split by status and apiserver identity.",
                                         .stability = telemetry::Stability::kBeta,
                                         .labels = {"apiserver_id_hash", "status"}})),
      reload_times_(parts_.metrics->Gauges(
          {.name = "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds",
           .help = "Timestamp of the last automatic reload of authorization configuration split by status and "
                   "apiserver identity.",
           .stability = telemetry::Stability::kBeta,
           .labels = {"apiserver_id_hash", "status"}})),
      configuration_(parts_.metrics->Gauges({.name = "apiserver_authorization_config_controller_last_config_info",
                                             .help = "Information about the last applied authorization configuration "
                                                     "with hash as label, split by apiserver identity.",
                                             .stability = telemetry::Stability::kAlpha,
                                             .labels = {"apiserver_id_hash", "hash"}})) {}

void Authorizers::ShowConfiguration(const std::string& text) {
  // Set to 0, the outdated series is not exposed any more.
  if (!configuration_hash_.empty()) configuration_.With({parts_.server_id_hash, configuration_hash_}).Set(0);
  configuration_hash_ = auth::MetricHash(text);
  configuration_.With({parts_.server_id_hash, configuration_hash_}).Set(1);
}

Outcome<std::unique_ptr<Authorizers>, Error> Authorizers::New(const AuthorizationOptions& options, Parts parts) {
  std::unique_ptr<Authorizers> made(new Authorizers(options, std::move(parts)));
  AuthorizationConfiguration config = ConfigurationOf(options);
  if (const std::string& file = options.authorization_configuration_file; !file.empty()) {
    const auto text = base::ReadFile(file);
    if (!text.ok()) return Error(text.error());
    auto parsed = ParseAuthorizationConfiguration(*text, MatchConditionProblem);
    if (!parsed.ok()) return Error(parsed.error());
    config = *std::move(parsed);
    made->ShowConfiguration(*text);
  }
  auto chain = made->Build(config);
  if (!chain.ok()) return Error("invalid authorization config: " + chain.error());
  for (const AuthorizerEntry& entry : config.authorizers) made->types_.insert(entry.type);
  made->authorizer_ = std::make_shared<auth::ReloadableAuthorizer>(chain->authorizer, chain->rules);
  return made;
}

bool Authorizers::Uses(std::string_view type) const { return types_.contains(std::string(type)); }

Outcome<void, std::string> Authorizers::Add(const AuthorizerEntry& entry,
                                            std::vector<std::shared_ptr<auth::Authorizer>>& members,
                                            std::vector<std::shared_ptr<auth::RuleResolver>>& resolvers) {
  const auto add = [&](auto authorizer) {
    members.push_back(std::make_shared<CountedAuthorizer>(authorizer,
                                                          decisions_.With({"allowed", entry.name, entry.type}),
                                                          decisions_.With({"denied", entry.name, entry.type})));
    resolvers.push_back(authorizer);
  };
  if (entry.type == "AlwaysAllow") add(std::make_shared<auth::AlwaysAllowAuthorizer>());
  if (entry.type == "AlwaysDeny") add(std::make_shared<auth::AlwaysDenyAuthorizer>());
  if (entry.type == "RBAC") add(parts_.rbac);
  if (entry.type == "Node") add(parts_.node);
  if (entry.type == "ABAC") {
    KS_TRY(const std::string text, base::ReadFile(policy_file_));
    KS_TRY(auto policies, auth::abac::ParsePolicyFile(policy_file_, text));
    add(std::make_shared<auth::abac::ABACAuthorizer>(std::move(policies)));
  }
  if (entry.type != "Webhook") return {};
  const AuthorizationWebhook& webhook = *entry.webhook;
  if (webhook.review_version != "v1" && webhook.review_version != "v1beta1") {
    return "unsupported webhook authorizer version " + base::GoQuote(webhook.review_version) +
           ", supported versions are \"v1\", \"v1beta1\"";
  }
  auth::WebhookAuthorizer::Options options{
      .name = entry.name,
      .version = webhook.review_version == "v1" ? auth::ReviewVersion::kV1 : auth::ReviewVersion::kV1beta1,
      .decision_on_error = webhook.failure_policy == AuthorizationWebhook::FailurePolicy::kDeny
                               ? auth::Decision::kDeny
                               : auth::Decision::kNoOpinion,
      .authorized_ttl = webhook.cache_authorized ? webhook.authorized_ttl : std::chrono::nanoseconds(0),
      .unauthorized_ttl = webhook.cache_unauthorized ? webhook.unauthorized_ttl : std::chrono::nanoseconds(0),
      .metrics = webhook_metrics_};
  KS_TRY(options.call, ConnectAuthorizationWebhook(parts_.transport, parts_.control_plane_dialer, entry.name, webhook,
                                                   options.version, webhook_metrics_));
  if (!webhook.match_conditions.empty()) {
    KS_TRY(auto conditions, auth::MatchConditions::Compile(webhook.match_conditions, parts_.time_zones));
    options.match = [conditions](const auth::Attributes& attributes) { return conditions->Matches(attributes); };
  }
  add(std::make_shared<auth::WebhookAuthorizer>(std::move(options)));
  return {};
}

Outcome<Authorizers::Chain, std::string> Authorizers::Build(const AuthorizationConfiguration& config) {
  std::vector<std::shared_ptr<auth::Authorizer>> members = {
      std::make_shared<auth::PrivilegedGroupAuthorizer>(std::string(request::kSystemMasters))};
  std::vector<std::shared_ptr<auth::RuleResolver>> resolvers;
  for (const AuthorizerEntry& entry : config.authorizers) KS_RETURN_IF_ERROR(Add(entry, members, resolvers));
  return Chain{std::make_shared<auth::UnionAuthorizer>(std::move(members)),
               std::make_shared<auth::UnionRuleResolver>(std::move(resolvers))};
}

bool Authorizers::Reload(const std::string& text) {
  const auto finish = [this](std::string_view status) {
    reloads_.With({parts_.server_id_hash, status}).Inc();
    const auto now = std::chrono::duration<double>(base::Clock::Real().Now().time_since_epoch()).count();
    reload_times_.With({parts_.server_id_hash, status}).Set(now);
    return status == "success";
  };
  auto config = ParseAuthorizationConfiguration(text, MatchConditionProblem);
  if (!config.ok()) {
    log::Error("Could not reload the authorization configuration", "err", config.error());
    return finish("failure");
  }
  // Types that were there at the start must stay: RBAC without its bootstrap, say, cannot come and go.
  std::set<std::string> missing = types_;
  for (const AuthorizerEntry& entry : config->authorizers) missing.erase(entry.type);
  missing.erase("Webhook");
  if (!missing.empty()) {
    log::Error("Could not reload the authorization configuration", "err",
               "missing required types: [" + base::Join({missing.begin(), missing.end()}, " ") + "]");
    return finish("failure");
  }
  auto chain = Build(*config);
  if (!chain.ok()) {
    log::Error("Could not reload the authorization configuration", "err", chain.error());
    return finish("failure");
  }
  authorizer_->Replace(chain->authorizer, chain->rules);
  ShowConfiguration(text);
  log::V(1).Info("Reloaded the authorization configuration");
  return finish("success");
}

}  // namespace keelson::app
