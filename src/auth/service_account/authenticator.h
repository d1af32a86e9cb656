// Bearer tokens of service accounts: bound tokens of the issuers, and legacy tokens kept in secrets.
// Thread safety: AuthenticateToken() from any I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "auth/service_account/claims.h"
#include "auth/service_account/public_keys.h"
#include "auth/token_authenticator.h"
#include "base/clock.h"
#include "telemetry/metrics.h"

namespace keelson::auth {

// An object that a token names.
struct TokenObject {
  std::string uid;
  std::optional<base::Clock::SystemTime> deleted_at;  // metadata.deletionTimestamp
  std::string token;                                  // of secrets: data.token
  std::string invalid_since;                          // of secrets: the label kubernetes.io/legacy-token-invalid-since
  std::string last_used;                              // of secrets: the label kubernetes.io/legacy-token-last-used
  std::vector<std::string> secrets;                   // of service accounts: names in .secrets
};

// serviceaccount_*_tokens_total and related metrics. The registry must outlive this.
struct ServiceAccountMetrics {
  explicit ServiceAccountMetrics(telemetry::MetricsRegistry& registry);
  telemetry::Counter &legacy, &stale, &valid, &manual, &automatic, &invalidated;
};

class TokenObjects {
 public:
  virtual ~TokenObjects() = default;
  // Nothing if it does not exist; an error if that is unknown. `resource`: serviceaccounts, secrets, pods, nodes.
  virtual Awaitable<Outcome<std::optional<TokenObject>, std::string>> Get(std::string resource, std::string name_space,
                                                                          std::string name) = 0;
  // Sets the label kubernetes.io/legacy-token-last-used of a secret that is still this one. Failures are not told.
  virtual Awaitable<void> RecordUse(std::string name_space, std::string secret, std::string uid, std::string date);
};

class ServiceAccountAuthenticator final : public TokenAuthenticator {
 public:
  struct Options {
    std::vector<std::string> issuers;
    std::vector<std::string> api_audiences;
    std::shared_ptr<PublicKeysGetter> keys;
    std::shared_ptr<TokenObjects> objects;
    bool lookup = true;                        // legacy tokens: compare with the secret
    ServiceAccountMetrics* metrics = nullptr;  // must outlive this
    const base::Clock* clock = &base::Clock::Real();
  };
  explicit ServiceAccountAuthenticator(Options options) : options_(std::move(options)) {}

  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  Awaitable<std::string> Verify(const Token& token) const;
  Awaitable<AuthenticationResult> Bound(TokenClaims claims) const;
  Awaitable<AuthenticationResult> Legacy(Value payload, std::string token) const;
  Awaitable<void> CheckSecret(std::string name_space, std::string name, std::string account, std::string uid,
                              std::string token, AuthenticationResult& result) const;
  Awaitable<void> RecordUse(std::string name_space, std::string name, const TokenObject& secret) const;
  Awaitable<std::string> CheckBinding(const TokenClaims& claims) const;
  Awaitable<std::string> CheckObject(std::string resource, std::string name_space, ObjectClaim claim,
                                     std::string kind) const;
  std::string CheckTimes(const TokenClaims& claims) const;
  bool Deleted(const TokenObject& object) const;
  void Count(telemetry::Counter& (*which)(ServiceAccountMetrics&)) const;

  Options options_;
};

}  // namespace keelson::auth
