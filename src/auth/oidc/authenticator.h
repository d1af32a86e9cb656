// Tokens of one issuer, by one entry of the AuthenticationConfiguration.
// Thread safety: AuthenticateToken() from any I/O thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "auth/oidc/config.h"
#include "auth/oidc/expressions.h"
#include "auth/oidc/metrics.h"
#include "auth/oidc/provider.h"
#include "auth/token_authenticator.h"
#include "base/clock.h"

namespace keelson::auth {

class JWTAuthenticator final : public TokenAuthenticator, public std::enable_shared_from_this<JWTAuthenticator> {
 public:
  static constexpr std::size_t kSourceIssuersMax = 16;  // issuers of distributed claims that are remembered

  struct Options {
    JWTConfig config;
    std::vector<std::string> signing_algorithms;
    std::vector<std::string> disallowed_issuers;
    std::shared_ptr<DocumentFetcher> fetcher;
    JWTMetrics* metrics = nullptr;  // must outlive this
    const base::Clock* clock = &base::Clock::Real();
    const cel::TimeZones* time_zones = nullptr;  // of expressions; must outlive this
  };
  // The error is the start error's text.
  static Outcome<std::shared_ptr<JWTAuthenticator>, std::string> New(Options options);

  // Fetches the discovery document until it is there, every 10 s. Spawn it once; it ends when the authenticator goes.
  static Awaitable<void> Initialize(std::weak_ptr<JWTAuthenticator> self);
  // "" or why tokens cannot be verified yet.
  std::string HealthProblem() const;
  const std::string& issuer() const { return options_.config.issuer.url; }
  // Ends its part in the metrics of keys; it goes on to authenticate.
  void Retire(JWTMetrics::Series series);

  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  explicit JWTAuthenticator(Options options);
  Awaitable<AuthenticationResult> Authenticate(std::string token);
  // Verifies signature, times, issuer and audience; "" or upstream's text.
  Awaitable<std::string> VerifyIDToken(std::shared_ptr<Provider> provider, std::string text, bool check_audience) const;
  // Adds the claim of the groups from where the token says it is; "" or upstream's text.
  Awaitable<std::string> ExpandGroups(base::Arena& arena, Value claims);
  Outcome<std::shared_ptr<Provider>, std::string> SourceProvider(const std::string& issuer);
  std::string MapUser(base::Arena& arena, Value claims, request::User& user) const;
  std::string MapName(Value claims, request::User& user) const;
  std::string MapGroups(Value claims, request::User& user) const;
  std::string MapUID(Value claims, request::User& user) const;
  std::string MapExtra(Value claims, request::User& user) const;
  std::string CheckRules(base::Arena& arena, Value claims, const request::User& user) const;

  const Options options_;
  std::shared_ptr<JWTMetrics::Issuer> counted_;  // null without metrics
  std::shared_ptr<Provider> provider_;
  std::optional<Expression> username_, groups_, uid_;
  std::vector<std::pair<std::string, Expression>> extra_;                     // key, value
  std::vector<std::pair<Expression, std::string>> claim_rules_, user_rules_;  // with their messages

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Provider>> sources_;  // of distributed claims, by issuer
};

// The authenticators in force. Thread safety: all members from any thread.
class JWTAuthenticators final : public TokenAuthenticator {
 public:
  using Set = std::vector<std::shared_ptr<JWTAuthenticator>>;
  // The first set; `initialize` spawns Initialize() of an authenticator.
  explicit JWTAuthenticators(Set first) : set_(std::make_shared<const Set>(std::move(first))) {}
  // Metrics of issuers that `next` does not have are removed.
  void Replace(Set next);
  std::shared_ptr<const Set> set() const;
  // Fails on the first error: a token has one issuer.
  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Set> set_;
};

}  // namespace keelson::auth
