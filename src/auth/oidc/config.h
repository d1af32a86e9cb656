// AuthenticationConfiguration (apiserver.config.k8s.io): issuers of JSON web tokens, and conditions for anonymous
// requests.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"
#include "meta/status.h"
#include "object/field_path.h"

namespace keelson::auth {

struct JWTConfig {
  struct Issuer {
    std::string url, discovery_url, certificate_authority;
    std::vector<std::string> audiences;
    std::string audience_match_policy, egress_selector_type;
  } issuer;
  struct ClaimRule {
    std::string claim, required_value, expression, message;
  };
  std::vector<ClaimRule> claim_rules;
  struct PrefixedClaim {
    std::string claim, expression;
    std::optional<std::string> prefix;
  };
  PrefixedClaim username, groups;
  struct Claim {
    std::string claim, expression;
  } uid;
  struct ExtraMapping {
    std::string key, expression;
  };
  std::vector<ExtraMapping> extra;
  struct UserRule {
    std::string expression, message;
  };
  std::vector<UserRule> user_rules;
};

struct AnonymousConfig {
  bool enabled = false;
  std::vector<std::string> paths;
  friend bool operator==(const AnonymousConfig&, const AnonymousConfig&) = default;
};

struct AuthenticationConfig {
  static constexpr std::size_t kIssuersMax = 64;
  std::vector<JWTConfig> jwt;
  std::optional<AnonymousConfig> anonymous;
};

// The error is upstream's text after `failed to load authentication configuration from file "F": `.
Outcome<AuthenticationConfig, std::string> ParseAuthenticationConfig(std::string_view text);

// Every problem, in upstream's order. `disallowed_issuers`: the server's own.
meta::FieldErrors ValidateAuthenticationConfig(const AuthenticationConfig& config,
                                               const std::vector<std::string>& disallowed_issuers);
// One entry of it, with paths below `root`.
void ValidateJWT(const JWTConfig& jwt, const FieldPath& root, const std::vector<std::string>& disallowed_issuers,
                 meta::FieldErrors& errors);

}  // namespace keelson::auth
