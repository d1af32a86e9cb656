// Bearer tokens of service accounts: bound tokens of the issuers, and legacy tokens kept in secrets.
// Thread safety: Authenticate() from any I/O thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "auth/authenticator.h"
#include "auth/service_account/claims.h"
#include "auth/service_account/keys.h"
#include "base/clock.h"

namespace keelson::auth {

// An object that a token names.
struct TokenObject {
  std::string uid;
  std::optional<base::Clock::SystemTime> deleted_at;  // metadata.deletionTimestamp
  std::string token;                                  // of secrets: data.token
  std::string invalid_since;                          // of secrets: the label kubernetes.io/legacy-token-invalid-since
  std::string last_used;                              // of secrets: the label kubernetes.io/legacy-token-last-used
};

class TokenObjects {
 public:
  virtual ~TokenObjects() = default;
  // Nothing when there is none; an error when nobody can tell. `resource`: serviceaccounts, secrets, pods, nodes.
  virtual Awaitable<Outcome<std::optional<TokenObject>, std::string>> Get(std::string resource, std::string name_space,
                                                                          std::string name) = 0;
  // Sets the label kubernetes.io/legacy-token-last-used of a secret that is still this one. Failures are not told.
  virtual Awaitable<void> RecordUse(std::string name_space, std::string secret, std::string uid, std::string date);
};

class ServiceAccountAuthenticator final : public Authenticator {
 public:
  struct Options {
    std::vector<std::string> issuers;
    std::vector<std::string> api_audiences;
    std::vector<PublicKey> keys;
    std::shared_ptr<TokenObjects> objects;
    bool lookup = true;  // legacy tokens: compare with the secret
    const base::Clock* clock = &base::Clock::Real();
  };
  explicit ServiceAccountAuthenticator(Options options) : options_(std::move(options)) {}

  Awaitable<AuthenticationResult> Authenticate(const http::Request& request) override;
  Awaitable<AuthenticationResult> AuthenticateFor(const http::Request& request,
                                                  std::vector<std::string> audiences) override;

 private:
  Awaitable<AuthenticationResult> Bound(TokenClaims claims, std::vector<std::string> audiences) const;
  Awaitable<AuthenticationResult> Legacy(Value payload, std::string_view token,
                                         std::vector<std::string> audiences) const;
  Awaitable<void> RecordUse(std::string name_space, std::string name, const TokenObject& secret) const;
  Awaitable<std::string> CheckObject(std::string resource, std::string name_space, ObjectClaim claim,
                                     std::string_view kind) const;
  std::string CheckTimes(const TokenClaims& claims) const;
  bool Deleted(const TokenObject& object) const;

  Options options_;
};

}  // namespace keelson::auth
