#include "auth/service_account/claims.h"

#include <algorithm>

#include "object/json_text.h"

namespace keelson::auth {
namespace {

// Seconds; a number beyond what any clock shows is the bound itself, as a token may say anything.
std::optional<std::int64_t> Time(Value value) {
  constexpr std::int64_t kMax = 1LL << 53;
  if (value.is_int()) return std::clamp<std::int64_t>(value.as_int(), -kMax, kMax);
  if (!value.is_double()) return std::nullopt;
  const double seconds = value.as_double();
  if (!(seconds > -static_cast<double>(kMax))) return -kMax;  // NaN as well
  return seconds >= static_cast<double>(kMax) ? kMax : static_cast<std::int64_t>(seconds);
}

std::optional<ObjectClaim> Object(Value value) {
  if (!value.is_map()) return std::nullopt;
  return ObjectClaim{.name = std::string(value["name"].as_string()), .uid = std::string(value["uid"].as_string())};
}

}  // namespace

std::string ServiceAccountUserName(std::string_view name_space, std::string_view name) {
  return "system:serviceaccount:" + std::string(name_space) + ":" + std::string(name);
}

std::string TokenClaims::ToJSON() const {
  base::Arena arena;
  Value out = Value::Map(arena);
  const auto text = [&](const std::string& value) { return Value(std::string_view(value)); };
  Value list = Value::List(arena, audiences.size());
  for (const std::string& audience : audiences) list.Append(arena, text(audience));
  out.Set(arena, "aud", list);
  if (expires) out.Set(arena, "exp", Value(*expires));
  if (issued_at) out.Set(arena, "iat", Value(*issued_at));
  out.Set(arena, "iss", text(issuer));
  out.Set(arena, "jti", text(id));
  Value kubernetes = Value::Map(arena);
  // The texts are not copied: a claim must outlive the call.
  const auto object = [&](std::string_view key, const ObjectClaim* claim) {
    if (claim == nullptr) return;
    Value value = Value::Map(arena);
    value.Set(arena, "name", text(claim->name));
    if (!claim->uid.empty()) value.Set(arena, "uid", text(claim->uid));
    kubernetes.Set(arena, key, value);
  };
  kubernetes.Set(arena, "namespace", text(name_space));
  object("node", node ? &*node : nullptr);
  object("pod", pod ? &*pod : nullptr);
  object("secret", secret ? &*secret : nullptr);
  object("serviceaccount", &service_account);
  if (warn_after) kubernetes.Set(arena, "warnafter", Value(*warn_after));
  out.Set(arena, "kubernetes.io", kubernetes);
  if (not_before) out.Set(arena, "nbf", Value(*not_before));
  out.Set(arena, "sub", text(subject));
  return object::ToJSON(out);
}

TokenClaims TokenClaims::From(Value payload) {
  TokenClaims claims;
  claims.issuer = payload["iss"].as_string();
  claims.subject = payload["sub"].as_string();
  claims.id = payload["jti"].as_string();
  const Value audience = payload["aud"];
  if (audience.is_string()) claims.audiences.emplace_back(audience.as_string());
  for (const Value item : audience.items()) claims.audiences.emplace_back(item.as_string());
  claims.expires = Time(payload["exp"]);
  claims.not_before = Time(payload["nbf"]);
  claims.issued_at = Time(payload["iat"]);
  const Value kubernetes = payload["kubernetes.io"];
  claims.name_space = kubernetes["namespace"].as_string();
  claims.service_account = Object(kubernetes["serviceaccount"]).value_or(ObjectClaim());
  claims.pod = Object(kubernetes["pod"]);
  claims.secret = Object(kubernetes["secret"]);
  claims.node = Object(kubernetes["node"]);
  claims.warn_after = Time(kubernetes["warnafter"]);
  return claims;
}

}  // namespace keelson::auth
