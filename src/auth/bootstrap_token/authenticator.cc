#include "auth/bootstrap_token/authenticator.h"

#include <re2/re2.h>

#include <set>

#include "base/strings.h"
#include "object/time.h"
#include "telemetry/log.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kSecretPrefix = "bootstrap-token-";
constexpr std::string_view kSecretType = "bootstrap.kubernetes.io/token";
constexpr std::string_view kDefaultGroup = "system:bootstrappers";

std::string DataOf(const BootstrapSecret& secret, const std::string& key) {
  const auto found = secret.data.find(key);
  return found == secret.data.end() ? std::string() : found->second;
}

bool HasExpired(const BootstrapSecret& secret, base::Clock::SystemTime now) {
  const std::string expiration = DataOf(secret, "expiration");
  if (expiration.empty()) return false;
  const auto at = object::ParseTime(expiration);
  return !at.ok() || base::Clock::SystemTime(std::chrono::seconds(at->seconds)) <= now;  // unreadable: expired
}

// Sorted; nothing when one of them is none that bootstrap tokens may have.
std::optional<std::vector<std::string>> GroupsOf(const BootstrapSecret& secret) {
  static const re2::RE2 pattern("\\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\\z");
  std::set<std::string> groups{std::string(kDefaultGroup)};
  const std::string extra = DataOf(secret, "auth-extra-groups");
  if (!extra.empty()) {
    for (const std::string_view group : base::Split(extra, ',')) {
      if (!re2::RE2::FullMatch(re2::StringPiece(group.data(), group.size()), pattern)) return std::nullopt;
      groups.emplace(group);
    }
  }
  return std::vector<std::string>(groups.begin(), groups.end());
}

// "" when the secret vouches for the token.
std::string Problem(const BootstrapSecret& secret, std::string_view id, std::string_view token_secret,
                    base::Clock::SystemTime now) {
  if (secret.deleting) return "is deleted and awaiting removal";
  if (secret.type != kSecretType) return "has invalid type, expected bootstrap.kubernetes.io/token";
  if (!base::ConstantTimeEquals(DataOf(secret, "token-secret"), token_secret))
    return "has invalid value for key token-secret";
  if (DataOf(secret, "token-id") != id) return "has invalid value for key token-id";
  if (HasExpired(secret, now)) return "has expired";
  if (DataOf(secret, "usage-bootstrap-authentication") != "true")
    return "not marked usage-bootstrap-authentication=true";
  return {};
}

}  // namespace

Awaitable<AuthenticationResult> BootstrapTokenAuthenticator::AuthenticateToken(std::string token,
                                                                               std::vector<std::string> audiences) {
  static_cast<void>(audiences);
  static const re2::RE2 pattern("\\A([a-z0-9]{6})\\.([a-z0-9]{16})\\z");
  std::string id, token_secret;
  if (!re2::RE2::FullMatch(token, pattern, &id, &token_secret)) co_return AuthenticationResult();
  const std::string name = std::string(kSecretPrefix) + id;
  auto secret = co_await secrets_->Get(name);
  if (!secret.ok()) co_return AuthenticationResult::Failed(secret.error());
  if (!*secret) co_return AuthenticationResult();
  const auto groups = GroupsOf(**secret);
  std::string problem = Problem(**secret, id, token_secret, clock_.Now());
  if (problem.empty() && !groups) problem = "has invalid value for key auth-extra-groups";
  if (!problem.empty()) {
    log::V(3).Info("Bootstrap secret is not usable", "secret", name, "problem", problem);
    co_return AuthenticationResult();
  }
  AuthenticationResult result;
  result.user = request::User{.name = "system:bootstrap:" + id, .groups = *groups};
  co_return result;
}

}  // namespace keelson::auth
