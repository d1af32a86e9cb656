#include "app/authentication.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <mutex>

#include "app/files.h"
#include "auth/certificates.h"
#include "auth/oidc/authenticator.h"
#include "auth/oidc/config.h"
#include "auth/oidc/http_fetcher.h"
#include "auth/static_tokens.h"
#include "auth/token_review/authenticator.h"
#include "base/random.h"
#include "base/strings.h"
#include "telemetry/log.h"
#include "validation/errors.h"
#include "webhook/kubeconfig.h"

namespace keelson::app {
namespace {

constexpr std::chrono::seconds kTokenSuccessTTL{10};

using TokenMembers = std::vector<std::shared_ptr<auth::TokenAuthenticator>>;

// Client and request-header authorities as they are in force. A certificate in both, without allowed proxy names, would
// let every client name any user: refused at the start, and here when a file changes.
class AuthorityBundles {
 public:
  explicit AuthorityBundles(bool may_overlap) : may_overlap_(may_overlap) {}
  enum Which : std::uint8_t { kClients, kProxies };

  // Loads a bundle with `load` unless it overlaps with the other; "" or what is wrong.
  template <class Load>
  std::string Replace(Which which, const std::string& pem, Load load) {
    auto certificates = auth::ParseCertificates(pem);
    if (!certificates.ok()) return certificates.error();
    std::lock_guard lock(mutex_);
    const auto& other = bundles_[1 - which];
    const bool overlap = std::ranges::any_of(*certificates, [&](const std::string& certificate) {
      return std::ranges::find(other, certificate) != other.end();
    });
    if (overlap && !may_overlap_) return "client and request-header authorities overlap";
    if (std::string problem = load(pem); !problem.empty()) return problem;
    bundles_[which] = *std::move(certificates);
    return {};
  }

 private:
  const bool may_overlap_;
  std::mutex mutex_;
  std::vector<std::string> bundles_[2];  // DER
};

// Loads and follows a CA file. `purpose` is its name in messages.
template <class Authenticator>
Outcome<void, Error> FollowCA(const std::string& file, std::string_view purpose, AuthorityBundles::Which which,
                              const std::shared_ptr<AuthorityBundles>& bundles, Authenticator* authenticator,
                              FollowedFiles& files) {
  KS_TRY(const std::string pem, ReadSmallFile(file));
  const std::string name = base::GoQuote(std::string(purpose) + "::" + file);
  if (pem.empty()) return Error("missing content for CA bundle " + name);
  const auto load = [authenticator](const std::string& text) { return authenticator->SetCA(text); };
  if (std::string problem = bundles->Replace(which, pem, load); !problem.empty())
    return Error("error loading CA bundle for " + name + ": " + problem);
  // The authenticators live as long as the server, and files are looked at no longer than that.
  files.Add(file, pem, [bundles, which, load, file](const std::string& text) {
    const std::string problem = bundles->Replace(which, text, load);
    if (!problem.empty()) log::Error("Changed CA file is not usable", "path", file, "err", problem);
    return problem.empty() ? Taken::kLoaded : Taken::kRetry;
  });
  return {};
}

Outcome<void, Error> AddCertificates(const AuthenticationOptions& options, AuthenticationParts& parts,
                                     auth::RequestAuthenticator::Options& made) {
  const auto bundles = std::make_shared<AuthorityBundles>(!options.request_header.allowed_names.empty());
  if (!options.client_ca_file.empty()) {
    made.x509 = std::make_unique<auth::X509Authenticator>(parts.features.Enabled("AllowParsingUserUIDFromCertAuth"));
    KS_RETURN_IF_ERROR(FollowCA(options.client_ca_file, "client-ca-bundle", AuthorityBundles::kClients, bundles,
                                made.x509.get(), parts.files));
    made.x509->RegisterMetrics(parts.metrics);
  }
  if (const auto& headers = options.request_header; !headers.client_ca_file.empty()) {
    made.request_header = std::make_unique<auth::RequestHeaderAuthenticator>(
        auth::RequestHeaderOptions{.allowed_names = headers.allowed_names,
                                   .username_headers = headers.username_headers,
                                   .uid_headers = headers.uid_headers,
                                   .group_headers = headers.group_headers,
                                   .extra_header_prefixes = headers.extra_header_prefixes});
    KS_RETURN_IF_ERROR(FollowCA(headers.client_ca_file, "request-header", AuthorityBundles::kProxies, bundles,
                                made.request_header.get(), parts.files));
  }
  return {};
}

// Issuers of --authentication-config or of the --oidc- flags.
struct ConfiguredTokens {
  auth::AuthenticationConfig config;
  std::vector<std::string> signing_algorithms;
  std::string file_text;  // of --authentication-config
};

Outcome<auth::AuthenticationConfig, std::string> ParseAndValidate(const std::string& text) {
  auto config = auth::ParseAuthenticationConfig(text);
  if (!config.ok()) return config.error();
  const meta::FieldErrors errors = auth::ValidateAuthenticationConfig(*config, {});
  if (!errors.empty()) return "invalid authentication configuration: " + meta::AggregateMessage(errors);
  return config;
}

Outcome<auth::JWTConfig, Error> FromFlags(const AuthenticationOptions::OIDC& flags) {
  auth::JWTConfig jwt;
  jwt.issuer = {.url = flags.issuer_url, .audiences = {flags.client_id}};
  std::string prefix = flags.username_prefix;
  if (prefix.empty() && flags.username_claim != "email") prefix = flags.issuer_url + "#";
  if (prefix == "-") prefix.clear();
  jwt.username = {.claim = flags.username_claim, .prefix = prefix};
  if (!flags.groups_claim.empty()) jwt.groups = {.claim = flags.groups_claim, .prefix = flags.groups_prefix};
  if (!flags.ca_file.empty()) {
    KS_TRY(jwt.issuer.certificate_authority, ReadSmallFile(flags.ca_file));
  }
  for (const auto& [claim, value] : flags.required_claims)
    jwt.claim_rules.push_back({.claim = claim, .required_value = value});
  return jwt;
}

Outcome<ConfiguredTokens, Error> ReadConfiguredTokens(const AuthenticationOptions& options,
                                                      const AuthenticationParts& parts) {
  ConfiguredTokens configured;
  if (const std::string& file = options.authentication_config_file; !file.empty()) {
    configured.signing_algorithms = {"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"};
    const std::string failed = "failed to load authentication configuration from file " + base::GoQuote(file) + ": ";
    auto text = ReadSmallFile(file);
    if (!text.ok()) return Error(failed + text.error().message());
    auto config = auth::ParseAuthenticationConfig(*text);
    if (!config.ok()) return Error(failed + config.error());
    configured.config = *std::move(config);
    configured.file_text = *std::move(text);
    if (configured.config.anonymous && parts.anonymous_flag_set) {
      const FieldPath path("anonymous");
      return Error(meta::AggregateMessage({validation::Forbidden(
          path,
          "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration "
          "file")}));
    }
  } else if (!options.oidc.issuer_url.empty() && !options.oidc.client_id.empty()) {
    configured.signing_algorithms = options.oidc.signing_algs;
    KS_TRY(auth::JWTConfig jwt, FromFlags(options.oidc));
    configured.config.jwt.push_back(std::move(jwt));
  }
  const meta::FieldErrors errors = auth::ValidateAuthenticationConfig(configured.config, {});
  if (!errors.empty()) return Error("invalid authentication configuration: " + meta::AggregateMessage(errors));
  return configured;
}

// Makes the authenticators of a configuration, in force now or later.
class JWTFactory {
 public:
  JWTFactory(const AuthenticationParts& parts, std::shared_ptr<http::Transport> transport,
             std::vector<std::string> algorithms, std::vector<std::string> own_issuers)
      : io_(parts.io),
        metrics_(parts.jwt_metrics),
        transport_(std::move(transport)),
        cluster_dialer_(parts.cluster_dialer),
        control_plane_dialer_(parts.control_plane_dialer),
        time_zones_(parts.time_zones),
        algorithms_(std::move(algorithms)),
        own_issuers_(std::move(own_issuers)) {}

  Outcome<auth::JWTAuthenticators::Set, std::string> Make(const auth::AuthenticationConfig& config) const {
    auth::JWTAuthenticators::Set set;
    for (const auth::JWTConfig& jwt : config.jwt) {
      auto made = auth::JWTAuthenticator::New({.config = jwt,
                                               .signing_algorithms = algorithms_,
                                               .disallowed_issuers = own_issuers_,
                                               .fetcher = std::make_shared<auth::HTTPFetcher>(
                                                   transport_, jwt.issuer.certificate_authority, DialerOf(jwt.issuer)),
                                               .metrics = &metrics_,
                                               .time_zones = time_zones_});
      if (!made.ok()) return made.error();
      set.push_back(*std::move(made));
    }
    for (const auto& authenticator : set)
      asio::co_spawn(io_.Next(), auth::JWTAuthenticator::Initialize(authenticator), asio::detached);
    return set;
  }
  async::IOPool& io() const { return io_; }
  auth::JWTMetrics& metrics() const { return metrics_; }

 private:
  net::DialerPtr DialerOf(const auth::JWTConfig::Issuer& issuer) const {
    if (issuer.egress_selector_type == "cluster") return cluster_dialer_;
    return issuer.egress_selector_type == "controlplane" ? control_plane_dialer_ : nullptr;
  }
  async::IOPool& io_;
  auth::JWTMetrics& metrics_;
  const std::shared_ptr<http::Transport> transport_;
  const net::DialerPtr cluster_dialer_, control_plane_dialer_;
  const cel::TimeZones* const time_zones_;
  const std::vector<std::string> algorithms_, own_issuers_;
};

// Counts changes of the file, so that an older set never replaces a newer one.
using Generation = std::shared_ptr<std::atomic<std::uint64_t>>;

// The old set stays in force until every issuer of the new one answered.
Awaitable<void> ReplaceWhenHealthy(std::shared_ptr<JWTFactory> factory, std::shared_ptr<auth::JWTAuthenticators> target,
                                   auth::JWTAuthenticators::Set next, std::string text, Generation generation,
                                   std::uint64_t mine) {
  constexpr std::chrono::milliseconds kPoll{500};
  constexpr int kPollsPerReport = 120;  // a minute
  for (int polls = 0;; ++polls) {
    if (*generation != mine) co_return;
    std::string problem;
    for (const auto& authenticator : next) {
      if (problem.empty()) problem = authenticator->HealthProblem();
    }
    if (problem.empty()) break;
    if (polls % kPollsPerReport == kPollsPerReport - 1) {
      log::Error("Changed authentication configuration is not in force yet", "err", problem);
      factory->metrics().Reloaded(nullptr);
    }
    asio::steady_timer timer(co_await asio::this_coro::executor, kPoll);
    co_await timer.async_wait(kNoThrow);
  }
  target->Replace(std::move(next));
  factory->metrics().Reloaded(&text);
  log::Info("Changed authentication configuration is in force");
}

// Takes a changed --authentication-config. An invalid one is counted once, as upstream.
Taken TakeConfiguration(const std::string& text, const std::optional<auth::AnonymousConfig>& anonymous,
                        const std::shared_ptr<JWTFactory>& factory,
                        const std::shared_ptr<auth::JWTAuthenticators>& target, const Generation& generation) {
  const auto refuse = [&factory](const std::string& problem) {
    log::Error("Changed authentication configuration is not usable", "err", problem);
    factory->metrics().Reloaded(nullptr);
    return Taken::kRefused;
  };
  auto config = ParseAndValidate(text);
  if (!config.ok()) return refuse(config.error());
  if (config->anonymous != anonymous) return refuse("anonymous: Forbidden: changed from initial configuration file");
  auto set = factory->Make(*config);
  if (!set.ok()) return refuse(set.error());
  const std::uint64_t mine = ++*generation;
  asio::co_spawn(factory->io().Next(), ReplaceWhenHealthy(factory, target, *std::move(set), text, generation, mine),
                 asio::detached);
  return Taken::kLoaded;
}

Outcome<std::shared_ptr<auth::TokenAuthenticator>, Error> MakeJWTAuthenticators(
    const AuthenticationOptions& options, AuthenticationParts& parts, const ConfiguredTokens& configured,
    std::shared_ptr<http::Transport> transport) {
  const auto factory = std::make_shared<JWTFactory>(parts, std::move(transport), configured.signing_algorithms,
                                                    options.service_accounts.issuers);
  auto set = factory->Make(configured.config);
  if (!set.ok()) return Error(set.error());
  const auto made = std::make_shared<auth::JWTAuthenticators>(*std::move(set));
  if (!options.authentication_config_file.empty()) {
    factory->metrics().Configured(configured.file_text);
    const Generation generation = std::make_shared<std::atomic<std::uint64_t>>(0);
    parts.files.Add(options.authentication_config_file, configured.file_text,
                    [anonymous = configured.config.anonymous, factory, made, generation](const std::string& text) {
                      return TakeConfiguration(text, anonymous, factory, made, generation);
                    });
  }
  return std::shared_ptr<auth::TokenAuthenticator>(made);
}

// The webhook with a separate cache: its results are kept for longer, failures too.
Outcome<std::shared_ptr<auth::TokenAuthenticator>, Error> MakeTokenWebhook(const AuthenticationOptions& options,
                                                                           AuthenticationParts& parts,
                                                                           std::shared_ptr<http::Transport> transport) {
  auto config = webhook::LoadKubeconfig(options.token_webhook_config_file, parts.control_plane_dialer);
  if (!config.ok()) return Error(config.error());
  const std::string& version = options.token_webhook_version;
  if (version != "v1" && version != "v1beta1") {
    return Error("unsupported authentication webhook version " + base::GoQuote(version) +
                 ", supported versions are \"v1\", \"v1beta1\"");
  }
  auto client = webhook::RESTClient::New(std::move(transport), *std::move(config));
  if (!client.ok()) return Error(client.error());
  auto reviews = std::make_shared<auth::TokenReviewAuthenticator>(*std::move(client), version, options.api_audiences);
  return std::shared_ptr<auth::TokenAuthenticator>(std::make_shared<auth::TokenCache>(
      std::move(reviews), auth::TokenCache::Options{.success_ttl = options.token_webhook_cache_ttl,
                                                    .failure_ttl = options.token_webhook_cache_ttl,
                                                    .metrics = &parts.token_cache_metrics}));
}

// Token authenticators in upstream's order.
Outcome<TokenMembers, Error> MakeTokenMembers(const AuthenticationOptions& options, AuthenticationParts& parts,
                                              const ConfiguredTokens& configured) {
  TokenMembers members;
  const auto for_api = [&](std::shared_ptr<auth::TokenAuthenticator> next) {
    members.push_back(
        std::make_shared<auth::AudienceAgnosticTokenAuthenticator>(std::move(next), options.api_audiences));
  };
  if (!options.token_file.empty()) {
    KS_TRY(const std::string csv, ReadSmallFile(options.token_file));
    auto tokens = auth::StaticTokenAuthenticator::FromCSV(options.token_file, csv);
    if (!tokens.ok()) return Error(tokens.error());
    for_api(*std::move(tokens));
  }
  if (parts.token_keys) {
    members.push_back(std::make_shared<auth::ServiceAccountAuthenticator>(
        auth::ServiceAccountAuthenticator::Options{.issuers = options.service_accounts.issuers,
                                                   .api_audiences = options.api_audiences,
                                                   .keys = parts.token_keys,
                                                   .objects = parts.token_objects,
                                                   .lookup = options.service_accounts.lookup,
                                                   .metrics = &parts.service_account_metrics}));
  }
  if (options.bootstrap_token_enable)
    for_api(std::make_shared<auth::BootstrapTokenAuthenticator>(parts.bootstrap_secrets));
  if (parts.console_sessions) for_api(parts.console_sessions);
  const auto& transport = parts.transport;
  if (!configured.config.jwt.empty() || !options.authentication_config_file.empty()) {
    KS_TRY(auto issuers, MakeJWTAuthenticators(options, parts, configured, transport));
    for_api(std::move(issuers));
  }
  if (!options.token_webhook_config_file.empty()) {
    KS_TRY(auto hook, MakeTokenWebhook(options, parts, transport));
    members.push_back(std::move(hook));
  }
  return members;
}

}  // namespace

Outcome<std::shared_ptr<auth::Authenticator>, Error> MakeAuthenticator(const AuthenticationOptions& options,
                                                                       AuthenticationParts parts) {
  auth::RequestAuthenticator::Options made{
      .api_audiences = options.api_audiences,
      .loopback_token = parts.loopback_token,
      .loopback_user = {.name = "system:apiserver",
                        .uid = base::Random::Real().UUID(),
                        .groups = {std::string(request::kAuthenticated), std::string(request::kSystemMasters)}},
      .anonymous = {.enabled = options.anonymous_allow}};
  KS_RETURN_IF_ERROR(AddCertificates(options, parts, made));
  KS_TRY(const ConfiguredTokens configured, ReadConfiguredTokens(options, parts));
  if (configured.config.anonymous) {
    made.anonymous = {.enabled = configured.config.anonymous->enabled, .paths = configured.config.anonymous->paths};
  }
  KS_TRY(TokenMembers members, MakeTokenMembers(options, parts, configured));
  if (!members.empty()) {
    using Union = auth::UnionTokenAuthenticator;
    made.tokens = std::make_shared<auth::TokenCache>(
        std::make_shared<Union>(std::move(members), Union::OnError::kContinue),
        auth::TokenCache::Options{
            .success_ttl = kTokenSuccessTTL, .keep_errors = true, .metrics = &parts.token_cache_metrics});
  }
  return std::shared_ptr<auth::Authenticator>(std::make_shared<auth::RequestAuthenticator>(std::move(made)));
}

}  // namespace keelson::app
