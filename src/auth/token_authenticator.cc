#include "auth/token_authenticator.h"

#include <algorithm>

namespace keelson::auth {

std::vector<std::string> IntersectAudiences(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> both;
  std::ranges::copy_if(a, std::back_inserter(both),
                       [&](const std::string& name) { return std::ranges::find(b, name) != b.end(); });
  return both;
}

Awaitable<AuthenticationResult> UnionTokenAuthenticator::AuthenticateToken(std::string token,
                                                                           std::vector<std::string> audiences) {
  AuthenticationResult all;
  for (const auto& member : members_) {
    AuthenticationResult answer = co_await member->AuthenticateToken(token, audiences);
    // Warnings and annotations of a failed member stay with the request, as upstream's does in the request's context.
    std::ranges::move(all.warnings, std::back_inserter(answer.warnings));
    std::ranges::move(all.annotations, std::back_inserter(answer.annotations));
    if (answer.user) co_return answer;
    all.warnings = std::move(answer.warnings);
    all.annotations = std::move(answer.annotations);
    const bool failed = !answer.errors.empty();
    std::ranges::move(answer.errors, std::back_inserter(all.errors));
    if (failed && on_error_ == OnError::kStop) break;
  }
  co_return all;
}

Awaitable<AuthenticationResult> AudienceAgnosticTokenAuthenticator::AuthenticateToken(
    std::string token, std::vector<std::string> audiences) {
  if (audiences.empty()) co_return co_await next_->AuthenticateToken(std::move(token), std::move(audiences));
  std::vector<std::string> both = IntersectAudiences(api_audiences_, audiences);
  if (both.empty()) co_return AuthenticationResult();
  AuthenticationResult result = co_await next_->AuthenticateToken(std::move(token), std::move(audiences));
  if (result.user) result.audiences = std::move(both);
  co_return result;
}

}  // namespace keelson::auth
