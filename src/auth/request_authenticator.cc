#include <algorithm>

#include "auth/authenticator.h"
#include "auth/bearer.h"
#include "auth/token_authenticator.h"
#include "auth/token_cache.h"
#include "base/strings.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kInvalidToken = "invalid bearer token";
constexpr std::string_view kSpaceBefore =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";
constexpr std::string_view kProtocolHeader = "Sec-WebSocket-Protocol";

template <class T>
void Append(std::vector<T>& to, std::vector<T> from) {
  std::ranges::move(from, std::back_inserter(to));
}

// Keeps what a failed authenticator had to say.
void Collect(AuthenticationResult& all, AuthenticationResult answer) {
  Append(all.errors, std::move(answer.errors));
  Append(all.warnings, std::move(answer.warnings));
  Append(all.annotations, std::move(answer.annotations));
}

// The answer for a user that was found, with what the others had to say. Errors of the others do not matter any more.
AuthenticationResult Accept(AuthenticationResult all, AuthenticationResult answer) {
  Append(answer.warnings, std::move(all.warnings));
  Append(answer.annotations, std::move(all.annotations));
  if (NeedsAuthenticatedGroup(*answer.user)) answer.user = WithAuthenticatedGroup(*answer.user);
  return answer;
}

}  // namespace

bool NeedsAuthenticatedGroup(const request::User& user) {
  return user.name != request::kAnonymous && !user.InGroup(request::kAuthenticated) &&
         !user.InGroup(request::kUnauthenticated);
}

request::User WithAuthenticatedGroup(request::User user) {
  if (NeedsAuthenticatedGroup(user)) user.groups.emplace_back(request::kAuthenticated);
  return user;
}

std::string AuthenticationResult::Error() const {
  std::vector<std::string> unique;
  for (const std::string& error : errors) {
    if (std::ranges::find(unique, error) == unique.end()) unique.push_back(error);
  }
  if (unique.size() == 1) return unique.front();
  return unique.empty() ? std::string() : "[" + base::Join(unique, ", ") + "]";
}

RequestAuthenticator::RequestAuthenticator(Options options) : options_(std::move(options)) {}
RequestAuthenticator::~RequestAuthenticator() = default;

// No user if the token is not the loopback token; the caller reports it as invalid if no other authenticator accepts
// it.
AuthenticationResult RequestAuthenticator::Loopback(std::string_view token,
                                                    const std::vector<std::string>& audiences) const {
  AuthenticationResult result;
  if (options_.loopback_token.empty() || !base::ConstantTimeEquals(options_.loopback_token, token)) return result;
  std::vector<std::string> both = IntersectAudiences(options_.api_audiences, audiences);
  if (!audiences.empty() && both.empty()) return result;
  result.user = options_.loopback_user;
  result.audiences = std::move(both);
  return result;
}

Awaitable<AuthenticationResult> RequestAuthenticator::FromTokens(std::string token, std::vector<std::string> audiences,
                                                                 async::CancellationPtr cancellation) const {
  AuthenticationResult result =
      co_await options_.tokens->AuthenticateFor(std::move(cancellation), std::move(token), std::move(audiences));
  // A token that no authenticator accepts is an invalid credential, not an anonymous request.
  if (!result.user && result.errors.empty()) result.errors.emplace_back(kInvalidToken);
  co_return result;
}

AuthenticationResult RequestAuthenticator::Anonymous(const http::Request& request,
                                                     std::vector<std::string> audiences) const {
  AuthenticationResult result;
  if (!options_.anonymous.enabled) return result;
  const auto& paths = options_.anonymous.paths;
  if (!paths.empty() && std::ranges::find(paths, request.path) == paths.end()) return result;
  result.user =
      request::User{.name = std::string(request::kAnonymous), .groups = {std::string(request::kUnauthenticated)}};
  result.audiences = std::move(audiences);
  return result;
}

// Front proxy and client certificate. Without a user: `all` has what they had to say.
AuthenticationResult RequestAuthenticator::FromConnection(const http::Request& request,
                                                          const std::vector<std::string>& audiences,
                                                          AuthenticationResult& all) const {
  if (options_.request_header) {
    std::vector<std::string> both = IntersectAudiences(options_.api_audiences, audiences);
    if (audiences.empty() || !both.empty()) {
      AuthenticationResult answer = options_.request_header->Authenticate(request);
      if (answer.user) {
        answer.audiences = std::move(both);
        return Accept(std::move(all), std::move(answer));
      }
      Collect(all, std::move(answer));
    }
  }
  if (options_.x509) {
    AuthenticationResult answer = options_.x509->Authenticate(request);
    if (answer.user) return Accept(std::move(all), std::move(answer));
    Collect(all, std::move(answer));
  }
  return {};
}

std::optional<AuthenticationResult> RequestAuthenticator::TryAuthenticate(const http::Request& request,
                                                                          const std::vector<std::string>& audiences) {
  if (request.headers.Has("Authorization") || request.headers.Has(kProtocolHeader)) return std::nullopt;
  AuthenticationResult all;
  AuthenticationResult answer = FromConnection(request, audiences, all);
  if (answer.user) return answer;
  if (all.errors.empty()) {
    answer = Anonymous(request, audiences);
    if (answer.user) return Accept(std::move(all), std::move(answer));
  }
  return all;
}

Awaitable<AuthenticationResult> RequestAuthenticator::Authenticate(http::Request& request,
                                                                   std::vector<std::string> audiences,
                                                                   async::CancellationPtr cancellation) {
  AuthenticationResult all;
  const BearerHeader bearer = ReadBearerHeader(request.headers);
  if (bearer.space_before) all.warnings.emplace_back(kSpaceBefore);
  const bool has_token = !bearer.token.empty();
  if (has_token) {
    AuthenticationResult answer = Loopback(bearer.token, audiences);
    if (answer.user) co_return answer;
  }
  AuthenticationResult connected = FromConnection(request, audiences, all);
  if (connected.user) co_return connected;
  if (options_.tokens) {
    if (!bearer.token.empty()) {
      // Most tokens were seen before: their answer needs no coroutine.
      if (const auto known = options_.tokens->Find(bearer.token, audiences); known != nullptr && known->user)
        co_return Accept(std::move(all), *known);
      AuthenticationResult answer = co_await FromTokens(bearer.token, audiences, cancellation);
      if (answer.user) co_return Accept(std::move(all), std::move(answer));
      Collect(all, std::move(answer));
    }
    auto protocol = ReadBearerProtocol(request);
    if (!protocol.ok()) {
      all.errors.push_back(protocol.error());
    } else if (!protocol->token.empty()) {
      AuthenticationResult answer = co_await FromTokens(protocol->token, audiences, cancellation);
      if (answer.user) {
        request.headers.Set(kProtocolHeader, protocol->others);
        co_return Accept(std::move(all), std::move(answer));
      }
      Collect(all, std::move(answer));
    }
  }
  if (all.errors.empty()) {
    AuthenticationResult answer = Anonymous(request, std::move(audiences));
    if (answer.user) co_return Accept(std::move(all), std::move(answer));
  }
  if (has_token) all.errors.emplace(all.errors.begin(), kInvalidToken);  // loopback's answer, which came first
  co_return all;
}

}  // namespace keelson::auth
