#include "auth/service_account/authenticator.h"

#include <algorithm>

#include "base/strings.h"
#include "object/json_text.h"
#include "object/time.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kLegacyIssuer = "kubernetes/serviceaccount";
constexpr std::string_view kCredential = "authentication.kubernetes.io/credential-id";
constexpr std::chrono::seconds kLeeway{60};
constexpr std::string_view kInvalidated = "service account token has been invalidated";

AuthenticationResult Refuse(std::string error) {
  AuthenticationResult result;
  result.error = std::move(error);
  return result;
}

request::User UserOf(std::string_view name_space, std::string_view name, std::string uid) {
  return {.name = ServiceAccountUserName(name_space, name),
          .uid = std::move(uid),
          .groups = {"system:serviceaccounts", "system:serviceaccounts:" + std::string(name_space)}};
}

std::string List(const std::vector<std::string>& texts) { return "[" + base::Join(texts, " ") + "]"; }

}  // namespace

bool ServiceAccountAuthenticator::Deleted(const TokenObject& object) const {
  return object.deleted_at && *object.deleted_at < options_.clock->Now() - kLeeway;
}

std::string ServiceAccountAuthenticator::CheckTimes(const TokenClaims& claims) const {
  using std::chrono::seconds;
  const auto now = std::chrono::floor<seconds>(options_.clock->Now()).time_since_epoch();
  if (claims.not_before && now + kLeeway < seconds(*claims.not_before)) return "service account token is not valid yet";
  if (claims.expires && now - kLeeway > seconds(*claims.expires)) return "service account token has expired";
  if (claims.issued_at && now + kLeeway < seconds(*claims.issued_at))
    return "service account token is issued in the future";
  return {};
}

Awaitable<AuthenticationResult> ServiceAccountAuthenticator::Authenticate(const http::Request& request) {
  return AuthenticateFor(request, options_.api_audiences);
}

Awaitable<AuthenticationResult> ServiceAccountAuthenticator::AuthenticateFor(const http::Request& request,
                                                                             std::vector<std::string> audiences) {
  const std::string text(BearerToken(request));
  if (text.empty() || text.starts_with('{')) co_return AuthenticationResult();
  auto token = ParseToken(text);
  if (!token.ok()) co_return AuthenticationResult();  // some other kind of token
  base::Arena arena;
  const auto payload = object::ParseJSON(arena, token->payload);
  if (!payload || !payload->is_map()) co_return AuthenticationResult();
  TokenClaims claims = TokenClaims::From(*payload);
  const bool legacy = claims.issuer == kLegacyIssuer;
  if (!legacy && std::ranges::find(options_.issuers, claims.issuer) == options_.issuers.end())
    co_return AuthenticationResult();
  if (std::string error = VerifyToken(*token, options_.keys); !error.empty()) co_return Refuse(std::move(error));

  const std::vector<std::string>& own = claims.audiences.empty() ? options_.api_audiences : claims.audiences;
  std::vector<std::string> both;
  std::ranges::copy_if(own, std::back_inserter(both),
                       [&](const auto& name) { return std::ranges::find(audiences, name) != audiences.end(); });
  if (both.empty() && !options_.api_audiences.empty()) {
    co_return Refuse("token audiences " + List(own) + " is invalid for the target audiences " + List(audiences));
  }
  if (legacy) co_return co_await Legacy(*payload, text, std::move(both));
  co_return co_await Bound(std::move(claims), std::move(both));
}

// "" when the object is there, is the one the token was made for, and lives.
Awaitable<std::string> ServiceAccountAuthenticator::CheckObject(std::string resource, std::string name_space,
                                                                ObjectClaim claim, std::string_view kind) const {
  auto object = co_await options_.objects->Get(resource, name_space, claim.name);
  if (!object.ok() || !*object) co_return std::string(kInvalidated);
  if ((*object)->uid != claim.uid) {
    co_return std::string(kind) + " UID (" + (*object)->uid + ") does not match service account " + std::string(kind) +
        " ref claim (" + claim.uid + ")";
  }
  co_return Deleted(**object) ? std::string(kInvalidated) : std::string();
}

Awaitable<AuthenticationResult> ServiceAccountAuthenticator::Bound(TokenClaims claims,
                                                                   std::vector<std::string> audiences) const {
  if (std::string error = CheckTimes(claims); !error.empty()) co_return Refuse(std::move(error));
  const ObjectClaim& account = claims.service_account;
  const std::string full_name = claims.name_space + "/" + account.name;
  auto object = co_await options_.objects->Get("serviceaccounts", claims.name_space, account.name);
  if (!object.ok()) co_return Refuse(object.error());
  if (!*object) co_return Refuse("serviceaccounts \"" + account.name + "\" not found");
  if (Deleted(**object)) co_return Refuse("service account " + full_name + " has been deleted");
  if ((*object)->uid != account.uid) {
    co_return Refuse("service account UID (" + (*object)->uid + ") does not match claim (" + account.uid + ")");
  }
  std::string error;
  if (claims.secret) error = co_await CheckObject("secrets", claims.name_space, *claims.secret, "secret");
  if (error.empty() && claims.pod) error = co_await CheckObject("pods", claims.name_space, *claims.pod, "pod");
  // With a pod the node only tells where the pod ran.
  if (error.empty() && claims.node && !claims.pod) error = co_await CheckObject("nodes", "", *claims.node, "node");
  if (!error.empty()) co_return Refuse(std::move(error));

  AuthenticationResult result;
  request::User user = UserOf(claims.name_space, account.name, account.uid);
  const auto extra = [&user](std::string key, const std::string& value) {
    if (!value.empty()) user.extra.push_back({std::move(key), {value}});
  };
  if (!claims.id.empty()) extra(std::string(kCredential), "JTI=" + claims.id);
  if (claims.node) {
    extra("authentication.kubernetes.io/node-name", claims.node->name);
    extra("authentication.kubernetes.io/node-uid", claims.node->uid);
  }
  if (claims.pod) {
    extra("authentication.kubernetes.io/pod-name", claims.pod->name);
    extra("authentication.kubernetes.io/pod-uid", claims.pod->uid);
  }
  result.user = std::move(user);
  result.audiences = std::move(audiences);
  co_return result;
}

Awaitable<void> TokenObjects::RecordUse(std::string, std::string, std::string, std::string) { co_return; }

// Once a day; a date of tomorrow comes from a server whose clock is ahead.
Awaitable<void> ServiceAccountAuthenticator::RecordUse(std::string name_space, std::string name,
                                                       const TokenObject& secret) const {
  const auto date = [&](std::chrono::hours ahead) {
    const auto time = options_.clock->Now() + ahead;
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
    return object::FormatTime(seconds).substr(0, 10);
  };
  const std::string today = date(std::chrono::hours(0));
  if (secret.last_used == today || secret.last_used == date(std::chrono::hours(24))) co_return;
  co_await options_.objects->RecordUse(std::move(name_space), std::move(name), secret.uid, today);
}

Awaitable<AuthenticationResult> ServiceAccountAuthenticator::Legacy(Value payload, std::string_view token,
                                                                    std::vector<std::string> audiences) const {
  const std::string prefix = "kubernetes.io/serviceaccount/";
  const auto claim = [&](std::string_view name) {
    return std::string(payload[prefix + std::string(name)].as_string());
  };
  const std::string subject(payload["sub"].as_string());
  const std::string name_space = claim("namespace"), secret_name = claim("secret.name"),
                    name = claim("service-account.name"), uid = claim("service-account.uid");
  if (subject.empty()) co_return Refuse("sub claim is missing");
  if (name_space.empty()) co_return Refuse("namespace claim is missing");
  if (secret_name.empty()) co_return Refuse("secretName claim is missing");
  if (name.empty()) co_return Refuse("serviceAccountName claim is missing");
  if (uid.empty()) co_return Refuse("serviceAccountUID claim is missing");
  if (subject != ServiceAccountUserName(name_space, name)) co_return Refuse("sub claim is invalid");
  if (options_.lookup) {
    auto secret = co_await options_.objects->Get("secrets", name_space, secret_name);
    if (!secret.ok() || !*secret || (*secret)->deleted_at) co_return Refuse("Token has been invalidated");
    if (!base::ConstantTimeEquals((*secret)->token, token)) co_return Refuse("Token does not match server's copy");
    auto account = co_await options_.objects->Get("serviceaccounts", name_space, name);
    if (!account.ok()) co_return Refuse(account.error());
    if (!*account) co_return Refuse("serviceaccounts \"" + name + "\" not found");
    if ((*account)->deleted_at) co_return Refuse("ServiceAccount " + name_space + "/" + name + " has been deleted");
    if ((*account)->uid != uid)
      co_return Refuse("ServiceAccount UID (" + (*account)->uid + ") does not match claim (" + uid + ")");
    co_await RecordUse(name_space, secret_name, **secret);
    if (!(*secret)->invalid_since.empty()) {
      co_return Refuse(
          "the token in secret " + name_space + "/" + secret_name + " for service account " + name_space + "/" + name +
          " has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or "
          "remove the "
          "'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token");
    }
  }
  AuthenticationResult result;
  result.user = UserOf(name_space, name, uid);
  result.audiences = std::move(audiences);
  co_return result;
}

}  // namespace keelson::auth
