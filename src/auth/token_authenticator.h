// Authenticates bearer tokens from any source (Authorization header, WebSocket sub-protocol, TokenReview).
// Thread safety: AuthenticateToken() from any I/O thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/awaitable.h"
#include "auth/authenticator.h"

namespace keelson::auth {

class TokenAuthenticator {
 public:
  virtual ~TokenAuthenticator() = default;
  // The token must be for one of `audiences`; empty: any will do.
  virtual Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) = 0;
};

// Tries one after the other; the first user wins. Errors of several are all reported.
class UnionTokenAuthenticator final : public TokenAuthenticator {
 public:
  enum class OnError : bool { kContinue, kStop };
  UnionTokenAuthenticator(std::vector<std::shared_ptr<TokenAuthenticator>> members, OnError on_error)
      : members_(std::move(members)), on_error_(on_error) {}
  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  const std::vector<std::shared_ptr<TokenAuthenticator>> members_;
  const OnError on_error_;
};

// For tokens without audiences: they are for the API's own audiences. No opinion if none of those is requested.
class AudienceAgnosticTokenAuthenticator final : public TokenAuthenticator {
 public:
  AudienceAgnosticTokenAuthenticator(std::shared_ptr<TokenAuthenticator> next, std::vector<std::string> api_audiences)
      : next_(std::move(next)), api_audiences_(std::move(api_audiences)) {}
  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  const std::shared_ptr<TokenAuthenticator> next_;
  const std::vector<std::string> api_audiences_;
};

// Members of `a` that are in `b`, in the order of `a`.
std::vector<std::string> IntersectAudiences(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace keelson::auth
