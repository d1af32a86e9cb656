// Authenticates tokens by a TokenReview webhook. Thread safety: AuthenticateToken() from any I/O thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "auth/token_authenticator.h"
#include "base/outcome.h"
#include "webhook/rest_client.h"

namespace keelson::auth {

class TokenReviewAuthenticator final : public TokenAuthenticator {
 public:
  // `version`: v1 or v1beta1. `api_audiences`: of answers that name none.
  TokenReviewAuthenticator(std::shared_ptr<webhook::RESTClient> client, std::string version,
                           std::vector<std::string> api_audiences)
      : client_(std::move(client)), version_(std::move(version)), api_audiences_(std::move(api_audiences)) {}
  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  const std::shared_ptr<webhook::RESTClient> client_;
  const std::string version_;
  const std::vector<std::string> api_audiences_;
};

// The review that is posted.
std::string TokenReviewRequest(std::string_view version, std::string_view token,
                               const std::vector<std::string>& audiences);
// The result of an answer, for these audiences; the error is client-go's.
AuthenticationResult ReadTokenReview(std::string_view version, const webhook::Response& response,
                                     const std::vector<std::string>& audiences,
                                     const std::vector<std::string>& api_audiences);

}  // namespace keelson::auth
