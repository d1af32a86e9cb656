// Bearer tokens that are known beforehand: --token-auth-file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/token_authenticator.h"
#include "base/outcome.h"

namespace keelson::auth {

class StaticTokenAuthenticator final : public TokenAuthenticator {
 public:
  // CSV as kube-apiserver's --token-auth-file; the error is the start error's text.
  static Outcome<std::unique_ptr<StaticTokenAuthenticator>, std::string> FromCSV(std::string_view file_name,
                                                                                 std::string_view csv);
  Awaitable<AuthenticationResult> AuthenticateToken(std::string token, std::vector<std::string> audiences) override;

 private:
  // By SHA-256 of the token, so that look-up time reveals nothing about the tokens.
  std::vector<std::pair<std::string, request::User>> tokens_;
};

}  // namespace keelson::auth
