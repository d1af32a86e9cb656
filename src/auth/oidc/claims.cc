#include "auth/oidc/claims.h"

#include <algorithm>

#include "object/json_text.h"
#include "object/time.h"

namespace keelson::auth {
namespace {

constexpr std::chrono::seconds kNotBeforeLeeway{60};

std::string_view KindOf(const Value& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_map()) return "object";
  if (value.is_list()) return "array";
  return value.is_null() ? "null" : "number";
}

// A member that must be a string of the struct that go-oidc decodes into; null is "".
std::string FieldText(const Value& claims, std::string_view name, std::string& out) {
  const Value value = claims[name];
  if (!value.is_string() && !value.is_null())
    return CannotUnmarshal(value, "Go struct field idToken." + std::string(name) + " of type string");
  out = value.as_string();
  return {};
}

std::string FieldTime(const Value& claims, std::string_view name, std::optional<std::int64_t>& out) {
  constexpr std::int64_t kMax = 1LL << 53;
  const Value value = claims[name];
  if (value.is_null()) return {};
  if (value.is_int()) {
    out = std::clamp<std::int64_t>(value.as_int(), -kMax, kMax);
  } else if (value.is_double()) {
    const double seconds = value.as_double();
    out = !(seconds > -static_cast<double>(kMax)) ? -kMax
          : seconds >= static_cast<double>(kMax)  ? kMax
                                                  : static_cast<std::int64_t>(seconds);
  } else {
    return CannotUnmarshal(value, "Go value of type json.Number");
  }
  return {};
}

// Go's time.Time as %v writes it.
std::string GoTime(std::int64_t seconds) {
  constexpr std::int64_t kYear10000 = 253402300800;
  if (seconds >= kYear10000 || seconds < object::Time::kZeroSeconds) return std::to_string(seconds);
  std::string text = object::FormatTime(seconds);  // 2006-01-02T15:04:05Z
  text[10] = ' ';
  text.pop_back();
  return text + " +0000 UTC";
}

}  // namespace

std::string CannotUnmarshal(const Value& value, std::string_view target) {
  return "json: cannot unmarshal " + std::string(KindOf(value)) + " into " + std::string(target);
}

std::string ClaimText(const Value& claims, std::string_view name, std::string& out) {
  if (!claims.Has(name)) return "claim not present";
  const Value value = claims[name];
  if (!value.is_string() && !value.is_null()) return CannotUnmarshal(value, "Go value of type string");
  out = value.as_string();
  return {};
}

std::string ClaimTexts(const Value& claim, std::vector<std::string>& out) {
  out.clear();
  if (claim.is_null()) return {};
  if (claim.is_string()) {
    out.emplace_back(claim.as_string());
    return {};
  }
  const bool texts = claim.is_list() && std::ranges::all_of(claim.items(), [](const Value& item) {
                       return item.is_string() || item.is_null();
                     });
  // Tried as a list first, then as a string: the error is that of the string.
  if (!texts) return CannotUnmarshal(claim, "Go value of type string");
  for (const Value item : claim.items()) out.emplace_back(item.as_string());
  return {};
}

Outcome<IDTokenClaims, std::string> IDTokenClaims::Parse(base::Arena& arena, std::string_view payload) {
  const auto value = object::ParseJSON(arena, payload);
  if (!value) return std::string("invalid JSON");
  if (!value->is_map()) return CannotUnmarshal(*value, "Go value of type oidc.idToken");
  IDTokenClaims claims;
  claims.all = *value;
  std::string text;
  if (std::string error = FieldText(*value, "iss", claims.issuer); !error.empty()) return error;
  for (const std::string_view name : {"sub", "nonce", "at_hash"}) {
    if (std::string error = FieldText(*value, name, text); !error.empty()) return error;
  }
  if (std::string error = ClaimTexts((*value)["aud"], claims.audiences); !error.empty())
    return CannotUnmarshal((*value)["aud"], "Go value of type []string");
  if (std::string error = FieldTime(*value, "exp", claims.expires); !error.empty()) return error;
  std::optional<std::int64_t> issued;
  if (std::string error = FieldTime(*value, "iat", issued); !error.empty()) return error;
  if (std::string error = FieldTime(*value, "nbf", claims.not_before); !error.empty()) return error;
  return claims;
}

std::string IDTokenClaims::DistributedProblem() const {
  for (const auto& member : all["_claim_names"].members()) {
    const std::string_view source = member.value.as_string();
    if (source.empty()) return "oidc: failed to obtain source from claim name";
    if (!all["_claim_sources"].Has(source)) return "oidc: source does not exist";
  }
  return {};
}

std::string IDTokenClaims::TimeProblem(base::Clock::SystemTime now) const {
  const std::int64_t expiry = expires.value_or(object::Time::kZeroSeconds);
  const std::int64_t seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  const bool fraction = now != base::Clock::SystemTime(std::chrono::seconds(seconds));
  if (expiry < seconds || (expiry == seconds && fraction))
    return "oidc: token is expired (Token Expiry: " + GoTime(expiry) + ")";
  if (not_before && seconds + kNotBeforeLeeway.count() < *not_before) {
    return "oidc: current time " + GoTime(seconds) + " before the nbf (not before) time: " + GoTime(*not_before);
  }
  return {};
}

Outcome<std::optional<ClaimSource>, std::string> DistributedSource(const Value& claims, std::string_view claim) {
  if (!claims.Has("_claim_names")) return std::optional<ClaimSource>();
  const Value names = claims["_claim_names"], sources = claims["_claim_sources"];
  if (!names.is_map())
    return "oidc: error parsing distributed claim names: " +
           CannotUnmarshal(names, "Go value of type map[string]string");
  if (!claims.Has("_claim_sources")) return std::string("oidc: no claim sources");
  if (!sources.is_map()) {
    return "oidc: could not parse claim sources: " +
           CannotUnmarshal(sources, "Go value of type map[string]oidc.endpoint");
  }
  if (!names.Has(claim)) return std::optional<ClaimSource>();
  const std::string_view source = names[claim].as_string();
  if (!sources.Has(source)) {
    return "id token _claim_names contained a source " + std::string(source) + " missing in _claims_sources";
  }
  const Value endpoint = sources[source];
  return std::optional(ClaimSource{.endpoint = std::string(endpoint["endpoint"].as_string()),
                                   .access_token = std::string(endpoint["access_token"].as_string())});
}

}  // namespace keelson::auth
