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

AuthenticationResult Refuse(std::string error) { return AuthenticationResult::Failed(std::move(error)); }

request::User UserOf(std::string_view name_space, std::string_view name, std::string uid) {
  return {.name = ServiceAccountUserName(name_space, name),
          .uid = std::move(uid),
          .groups = {"system:serviceaccounts", "system:serviceaccounts:" + std::string(name_space)}};
}

// Go's %q of a list.
std::string Quoted(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? " " : "") + base::GoQuote(text);
  return out + "]";
}

std::string NotFound(const std::string& name) {
  return name.empty() ? "resource name may not be empty" : "serviceaccounts \"" + name + "\" not found";
}

bool HasKey(const Token& token, const std::vector<PublicKey>& keys) {
  return std::ranges::any_of(keys,
                             [&](const PublicKey& key) { return token.key_id.empty() || key.id() == token.key_id; });
}

telemetry::Counter& NewCounter(telemetry::MetricsRegistry& registry, std::string_view name, std::string_view help) {
  return registry.NewCounter({.name = name, .help = help, .stability = telemetry::Stability::kAlpha});
}

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

void ServiceAccountAuthenticator::Count(telemetry::Counter& (*which)(ServiceAccountMetrics&)) const {
  if (options_.metrics != nullptr) which(*options_.metrics).Inc();
}

// "" when a key verifies the token.
Awaitable<std::string> ServiceAccountAuthenticator::Verify(const Token& token) const {
  auto keys = options_.keys->Current();
  if (!HasKey(token, keys->keys) && co_await options_.keys->Sync()) keys = options_.keys->Current();
  co_return VerifyToken(token, keys->keys);
}

Awaitable<AuthenticationResult> ServiceAccountAuthenticator::AuthenticateToken(std::string text,
                                                                               std::vector<std::string> audiences) {
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
  if (std::string error = co_await Verify(*token); !error.empty()) co_return Refuse(std::move(error));
  if (HasDuplicateKeys(token->payload)) co_return Refuse("go-jose/go-jose/json: duplicate key in token claims");

  AuthenticationResult result;
  if (claims.audiences.empty()) {
    result.annotations.emplace_back("authentication.k8s.io/legacy-token", claims.subject);
    Count([](ServiceAccountMetrics& metrics) -> auto& { return metrics.legacy; });
  }
  const std::vector<std::string>& own = claims.audiences.empty() ? options_.api_audiences : claims.audiences;
  const std::vector<std::string>& wanted = audiences.empty() ? options_.api_audiences : audiences;
  std::vector<std::string> both = IntersectAudiences(own, wanted);
  if (both.empty() && !options_.api_audiences.empty()) {
    result.errors.push_back("token audiences " + Quoted(own) + " is invalid for the target audiences " +
                            Quoted(wanted));
    co_return result;
  }
  AuthenticationResult answer = legacy ? co_await Legacy(*payload, text) : co_await Bound(std::move(claims));
  answer.annotations.insert(answer.annotations.begin(), result.annotations.begin(), result.annotations.end());
  if (answer.user) answer.audiences = std::move(both);
  co_return answer;
}

// "" when the object is there, is the one the token was made for, and lives.
Awaitable<std::string> ServiceAccountAuthenticator::CheckObject(std::string resource, std::string name_space,
                                                                ObjectClaim claim, std::string kind) const {
  auto object = co_await options_.objects->Get(resource, name_space, claim.name);
  if (!object.ok() || !*object) co_return std::string(kInvalidated);
  if ((*object)->uid != claim.uid) {
    co_return std::string(kind) + " UID (" + (*object)->uid + ") does not match service account " + std::string(kind) +
        " ref claim (" + claim.uid + ")";
  }
  co_return Deleted(**object) ? std::string(kInvalidated) : std::string();
}

// "" when the objects the token is bound to are there and live.
Awaitable<std::string> ServiceAccountAuthenticator::CheckBinding(const TokenClaims& claims) const {
  std::string error;
  if (claims.secret) error = co_await CheckObject("secrets", claims.name_space, *claims.secret, "secret");
  if (error.empty() && claims.pod) error = co_await CheckObject("pods", claims.name_space, *claims.pod, "pod");
  // With a pod, the node claim is informational: the node of the pod.
  if (error.empty() && claims.node && !claims.pod) error = co_await CheckObject("nodes", "", *claims.node, "node");
  co_return error;
}

Awaitable<AuthenticationResult> ServiceAccountAuthenticator::Bound(TokenClaims claims) const {
  if (std::string error = CheckTimes(claims); !error.empty()) co_return Refuse(std::move(error));
  const ObjectClaim& account = claims.service_account;
  auto object = co_await options_.objects->Get("serviceaccounts", claims.name_space, account.name);
  if (!object.ok()) co_return Refuse(object.error());
  if (!*object) co_return Refuse(NotFound(account.name));
  if ((*object)->uid != account.uid) {
    co_return Refuse("service account UID (" + (*object)->uid + ") does not match claim (" + account.uid + ")");
  }
  if (Deleted(**object))
    co_return Refuse("service account " + claims.name_space + "/" + account.name + " has been deleted");
  if (std::string error = co_await CheckBinding(claims); !error.empty()) co_return Refuse(std::move(error));

  AuthenticationResult result;
  if (claims.warn_after && *claims.warn_after != 0) {
    const auto now = std::chrono::floor<std::chrono::seconds>(options_.clock->Now()).time_since_epoch().count();
    if (now > *claims.warn_after) {
      result.annotations.emplace_back("authentication.k8s.io/stale-token",
                                      "subject: " + claims.subject + ", seconds after warning threshold: " +
                                          std::to_string(now - *claims.warn_after));
      Count([](ServiceAccountMetrics& metrics) -> auto& { return metrics.stale; });
    } else {
      Count([](ServiceAccountMetrics& metrics) -> auto& { return metrics.valid; });
    }
  }
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
  co_return result;
}

Awaitable<void> TokenObjects::RecordUse(std::string, std::string, std::string, std::string) { co_return; }

// Once a day; a future date comes from a server whose clock is ahead.
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

// Adds an error to `result`, or what the use of the secret is to be remembered by.
Awaitable<void> ServiceAccountAuthenticator::CheckSecret(std::string name_space, std::string name, std::string account,
                                                         std::string uid, std::string token,
                                                         AuthenticationResult& result) const {
  const auto refuse = [&](std::string error) { result.errors.push_back(std::move(error)); };
  auto secret = co_await options_.objects->Get("secrets", name_space, name);
  if (!secret.ok() || !*secret || (*secret)->deleted_at) co_return refuse("Token has been invalidated");
  if (!base::ConstantTimeEquals((*secret)->token, token)) co_return refuse("Token does not match server's copy");
  auto object = co_await options_.objects->Get("serviceaccounts", name_space, account);
  if (!object.ok()) co_return refuse(object.error());
  if (!*object) co_return refuse(NotFound(account));
  if ((*object)->deleted_at) co_return refuse("ServiceAccount " + name_space + "/" + account + " has been deleted");
  if ((*object)->uid != uid)
    co_return refuse("ServiceAccount UID (" + (*object)->uid + ") does not match claim (" + uid + ")");
  if (!(*secret)->invalid_since.empty()) {
    result.annotations.emplace_back("authentication.k8s.io/legacy-token-invalidated", name + "/" + name_space);
    Count([](ServiceAccountMetrics& metrics) -> auto& { return metrics.invalidated; });
    co_await RecordUse(name_space, name, **secret);
    co_return refuse(
        "the token in secret " + name_space + "/" + name + " for service account " + name_space + "/" + account +
        " has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or "
        "remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this "
        "token");
  }
  if (std::ranges::find((*object)->secrets, name) != (*object)->secrets.end()) {
    result.warnings.emplace_back(
        "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated "
        "secret-based tokens.");
    result.annotations.emplace_back("authentication.k8s.io/legacy-token-autogenerated-secret", name);
    Count([](ServiceAccountMetrics& metrics) -> auto& { return metrics.automatic; });
  } else {
    result.annotations.emplace_back("authentication.k8s.io/legacy-token-manual-secret", name);
    Count([](ServiceAccountMetrics& metrics) -> auto& { return metrics.manual; });
  }
  co_await RecordUse(name_space, name, **secret);
}

Awaitable<AuthenticationResult> ServiceAccountAuthenticator::Legacy(Value payload, std::string token) const {
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
  AuthenticationResult result;
  if (options_.lookup) {
    co_await CheckSecret(name_space, secret_name, name, uid, token, result);
    if (!result.errors.empty()) co_return result;
  }
  result.user = UserOf(name_space, name, uid);
  co_return result;
}

ServiceAccountMetrics::ServiceAccountMetrics(telemetry::MetricsRegistry& registry)
    : legacy(
          NewCounter(registry, "serviceaccount_legacy_tokens_total", "Cumulative legacy service account tokens used")),
      stale(NewCounter(registry, "serviceaccount_stale_tokens_total",
                       "Cumulative stale projected service account tokens used")),
      valid(NewCounter(registry, "serviceaccount_valid_tokens_total",
                       "Cumulative valid projected service account tokens used")),
      manual(NewCounter(registry, "serviceaccount_legacy_manual_token_uses_total",
                        "Cumulative manually created legacy tokens used")),
      automatic(NewCounter(registry, "serviceaccount_legacy_auto_token_uses_total",
                           "Cumulative auto-generated legacy tokens used")),
      invalidated(NewCounter(registry, "serviceaccount_invalid_legacy_auto_token_uses_total",
                             "Cumulative invalid auto-generated legacy tokens used")) {}

}  // namespace keelson::auth
