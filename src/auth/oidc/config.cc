#include "auth/oidc/config.h"

#include "base/arena.h"
#include "base/strings.h"
#include "codec/document.h"
#include "meta/type_errors.h"
#include "schema/schema.h"
#include "schema/types.h"

namespace keelson::auth {
namespace {

constexpr std::string_view kGroup = "apiserver.config.k8s.io";
constexpr std::string_view kKind = "AuthenticationConfiguration";

std::string Text(Value map, std::string_view key) { return std::string(map[key].as_string()); }

JWTConfig::PrefixedClaim ReadPrefixed(Value map) {
  JWTConfig::PrefixedClaim claim{.claim = Text(map, "claim"), .expression = Text(map, "expression")};
  if (map["prefix"].is_string()) claim.prefix = Text(map, "prefix");
  return claim;
}

JWTConfig ReadJWT(Value map) {
  JWTConfig jwt;
  const Value issuer = map["issuer"], mappings = map["claimMappings"];
  jwt.issuer = {.url = Text(issuer, "url"),
                .discovery_url = Text(issuer, "discoveryURL"),
                .certificate_authority = Text(issuer, "certificateAuthority"),
                .audience_match_policy = Text(issuer, "audienceMatchPolicy"),
                .egress_selector_type = Text(issuer, "egressSelectorType")};
  for (const Value audience : issuer["audiences"].items()) jwt.issuer.audiences.emplace_back(audience.as_string());
  for (const Value rule : map["claimValidationRules"].items()) {
    jwt.claim_rules.push_back({.claim = Text(rule, "claim"),
                               .required_value = Text(rule, "requiredValue"),
                               .expression = Text(rule, "expression"),
                               .message = Text(rule, "message")});
  }
  jwt.username = ReadPrefixed(mappings["username"]);
  jwt.groups = ReadPrefixed(mappings["groups"]);
  jwt.uid = {.claim = Text(mappings["uid"], "claim"), .expression = Text(mappings["uid"], "expression")};
  for (const Value extra : mappings["extra"].items())
    jwt.extra.push_back({.key = Text(extra, "key"), .expression = Text(extra, "valueExpression")});
  for (const Value rule : map["userValidationRules"].items())
    jwt.user_rules.push_back({.expression = Text(rule, "expression"), .message = Text(rule, "message")});
  return jwt;
}

// Why the text is no AuthenticationConfiguration of a known version; "" when it is one.
std::string KindProblem(const codec::TypeMeta& type_meta, std::string_view text) {
  if (std::string problem = codec::TypeMetaProblem(type_meta, text); !problem.empty()) return problem;
  const auto& [version, kind] = type_meta;
  const bool known = version == std::string(kGroup) + "/v1" || version == std::string(kGroup) + "/v1beta1" ||
                     version == std::string(kGroup) + "/v1alpha1";
  const bool registered = kind == kKind || schema::FindKind(kGroup, "v1", kind) != nullptr;
  if (!known || !registered) return meta::NotRegisteredError(kind, version);
  if (kind != kKind) return "expected AuthenticationConfiguration, got *apiserver." + std::string(kind);
  return {};
}

}  // namespace

Outcome<AuthenticationConfig, std::string> ParseAuthenticationConfig(std::string_view text) {
  if (text.empty()) return std::string("empty config data");
  const schema::Struct& type = schema::types::apiserver_v1::kAuthenticationConfiguration;
  base::Arena arena;
  constexpr codec::DecodeOptions kStrict = {.strict = true};
  KS_TRY(const codec::Document document, codec::ReadDocument(arena, text, kStrict));
  if (std::string problem = KindProblem(document.type_meta, text); !problem.empty()) return problem;
  auto decoded = codec::DecodeDocument(arena, document, type, kStrict);
  if (!decoded.ok()) return decoded.error().message;
  if (!decoded->strict_errors.empty()) return "strict decoding error: " + base::Join(decoded->strict_errors, ", ");
  AuthenticationConfig config;
  for (const Value jwt : decoded->value["jwt"].items()) config.jwt.push_back(ReadJWT(jwt));
  if (const Value anonymous = decoded->value["anonymous"]; anonymous.is_map()) {
    config.anonymous = AnonymousConfig{.enabled = anonymous["enabled"].as_bool()};
    for (const Value condition : anonymous["conditions"].items())
      config.anonymous->paths.push_back(Text(condition, "path"));
  }
  return config;
}

}  // namespace keelson::auth
