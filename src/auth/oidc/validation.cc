// The checks of upstream's ValidateAuthenticationConfiguration, in its order.
#include <algorithm>
#include <set>

#include "auth/certificates.h"
#include "auth/oidc/config.h"
#include "auth/oidc/expressions.h"
#include "base/arena.h"
#include "base/go_url.h"
#include "base/strings.h"
#include "validation/errors.h"
#include "validation/primitives.h"

namespace keelson::auth {
namespace {

using meta::FieldErrors;
using validation::Duplicate;
using validation::Invalid;
using validation::Required;

void CheckURL(const std::string& text, const FieldPath& path, const std::vector<std::string>& disallowed,
              FieldErrors& errors) {
  if (std::ranges::find(disallowed, text) != disallowed.end()) {
    const std::set<std::string> sorted(disallowed.begin(), disallowed.end());
    errors.push_back(Invalid(
        path, text,
        "URL must not overlap with disallowed issuers: [" + base::Join({sorted.begin(), sorted.end()}, " ") + "]"));
  }
  const auto url = base::ParseURL(text);
  if (!url.ok()) {
    errors.push_back(Invalid(path, text, url.error()));
    return;
  }
  if (url->scheme != "https") errors.push_back(Invalid(path, text, "URL scheme must be https"));
  if (url->has_user) errors.push_back(Invalid(path, text, "URL must not contain a username or password"));
  if (!url->raw_query.empty()) errors.push_back(Invalid(path, text, "URL must not contain a query"));
  if (!url->fragment.empty()) errors.push_back(Invalid(path, text, "URL must not contain a fragment"));
}

std::string_view WithoutSlashes(std::string_view text) {
  while (text.ends_with('/')) text.remove_suffix(1);
  return text;
}

void CheckAudiences(const JWTConfig::Issuer& issuer, const FieldPath& root, FieldErrors& errors) {
  const FieldPath path = root.Child("audiences"), policy = root.Child("audienceMatchPolicy");
  const auto& audiences = issuer.audiences;
  if (audiences.empty()) {
    errors.push_back(Required(path, "at least one " + path.ToString() + " is required"));
    return;
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < audiences.size(); ++i) {
    const FieldPath item = path.Index(static_cast<std::int64_t>(i));
    if (audiences[i].empty()) errors.push_back(Required(item));
    if (!seen.insert(audiences[i]).second) errors.push_back(Duplicate(item, std::string_view(audiences[i])));
  }
  const bool any = issuer.audience_match_policy == "MatchAny";
  if (audiences.size() > 1 && !any) {
    errors.push_back(
        Invalid(policy, issuer.audience_match_policy, "audienceMatchPolicy must be MatchAny for multiple audiences"));
  }
  if (audiences.size() == 1 && !any && !issuer.audience_match_policy.empty()) {
    errors.push_back(Invalid(policy, issuer.audience_match_policy,
                             "audienceMatchPolicy must be empty or MatchAny for single audience"));
  }
}

void CheckIssuer(const JWTConfig::Issuer& issuer, const FieldPath& root, const std::vector<std::string>& disallowed,
                 FieldErrors& errors) {
  if (issuer.url.empty()) {
    errors.push_back(Required(root.Child("url")));
  } else {
    CheckURL(issuer.url, root.Child("url"), disallowed, errors);
  }
  if (!issuer.discovery_url.empty()) {
    const FieldPath path = root.Child("discoveryURL");
    if (!issuer.url.empty() && WithoutSlashes(issuer.url) == WithoutSlashes(issuer.discovery_url))
      errors.push_back(Invalid(path, issuer.discovery_url, "discoveryURL must be different from URL"));
    CheckURL(issuer.discovery_url, path, {}, errors);
  }
  CheckAudiences(issuer, root, errors);
  if (!issuer.certificate_authority.empty()) {
    if (const auto parsed = ParseCertificates(issuer.certificate_authority); !parsed.ok())
      errors.push_back(Invalid(root.Child("certificateAuthority"), "<omitted>", parsed.error()));
  }
  const std::string& egress = issuer.egress_selector_type;
  if (!egress.empty() && egress != "controlplane" && egress != "cluster") {
    errors.push_back(
        Invalid(root.Child("egressSelectorType"), egress, "egress selector must be either controlplane or cluster"));
  }
}

// Uses of the claims email and email_verified in the expressions of one issuer.
struct EmailUse {
  bool email = false, verified = false;
};

// Appends the error of an expression that does not compile.
void CheckExpression(ExpressionKind kind, const std::string& text, const FieldPath& path, FieldErrors& errors,
                     EmailUse* use = nullptr) {
  const auto compiled = Expression::Compile(kind, text);
  if (!compiled.ok()) {
    errors.push_back(Invalid(path, text, compiled.error()));
    return;
  }
  if (use == nullptr) return;
  use->email |= compiled->UsesClaim("email");
  use->verified |= compiled->UsesClaim("email_verified");
}

void CheckClaimRules(const JWTConfig& jwt, const FieldPath& root, EmailUse& use, FieldErrors& errors) {
  std::set<std::string> claims, expressions;
  for (std::size_t i = 0; i < jwt.claim_rules.size(); ++i) {
    const auto& rule = jwt.claim_rules[i];
    const FieldPath path = root.Index(static_cast<std::int64_t>(i));
    if (!rule.claim.empty() && !rule.expression.empty()) {
      errors.push_back(Invalid(path, rule.claim, "claim and expression can't both be set"));
    } else if (rule.claim.empty() && rule.expression.empty()) {
      errors.push_back(Required(path, "claim or expression is required"));
    } else if (!rule.claim.empty()) {
      if (!rule.message.empty())
        errors.push_back(Invalid(path.Child("message"), rule.message, "may not be specified when claim is set"));
      if (!claims.insert(rule.claim).second)
        errors.push_back(Duplicate(path.Child("claim"), std::string_view(rule.claim)));
    } else {
      if (!rule.required_value.empty()) {
        errors.push_back(
            Invalid(path.Child("requiredValue"), rule.required_value, "may not be specified when expression is set"));
      }
      if (!expressions.insert(rule.expression).second) {
        errors.push_back(Duplicate(path.Child("expression"), std::string_view(rule.expression)));
        continue;
      }
      EmailUse own;
      CheckExpression(ExpressionKind::kClaimRule, rule.expression, path.Child("expression"), errors, &own);
      use.verified |= own.verified;
    }
  }
}

void CheckPrefixed(const JWTConfig::PrefixedClaim& mapping, const FieldPath& path, bool required, EmailUse* use,
                   FieldErrors& errors) {
  if (!mapping.claim.empty() && !mapping.expression.empty()) {
    errors.push_back(Invalid(path, "", "claim and expression can't both be set"));
  } else if (mapping.claim.empty() && mapping.expression.empty()) {
    if (required) errors.push_back(Required(path, "claim or expression is required"));
  } else if (!mapping.expression.empty()) {
    const std::size_t before = errors.size();
    if (mapping.prefix)
      errors.push_back(Invalid(path.Child("prefix"), *mapping.prefix, "may not be specified when expression is set"));
    CheckExpression(ExpressionKind::kMapping, mapping.expression, path.Child("expression"), errors,
                    before == errors.size() ? use : nullptr);
  } else if (!mapping.prefix) {
    errors.push_back(
        Required(path.Child("prefix"),
                 "prefix is required when claim is set. It can be set to an empty string to disable prefixing"));
  }
}

bool IsReserved(std::string_view key) {
  const auto slash = key.find('/');
  const std::string_view domain = slash == std::string_view::npos ? std::string_view() : key.substr(0, slash);
  return domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") || domain == "k8s.io" ||
         domain.ends_with(".k8s.io");
}

void CheckExtra(const JWTConfig& jwt, const FieldPath& root, EmailUse& use, FieldErrors& errors) {
  std::set<std::string> keys;
  for (std::size_t i = 0; i < jwt.extra.size(); ++i) {
    const auto& mapping = jwt.extra[i];
    const FieldPath path = root.Index(static_cast<std::int64_t>(i));
    const FieldPath key = path.Child("key"), value = path.Child("valueExpression");
    validation::ValidateDomainPrefixedPath(mapping.key, key, errors);
    if (mapping.key != base::ToLower(mapping.key)) errors.push_back(Invalid(key, mapping.key, "must be lowercase"));
    if (IsReserved(mapping.key)) {
      errors.push_back(
          Invalid(key, mapping.key, "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"));
    }
    if (!keys.insert(mapping.key).second) {
      errors.push_back(Duplicate(key, std::string_view(mapping.key)));
    } else if (mapping.expression.empty()) {
      errors.push_back(Required(value));
    } else {
      EmailUse own;
      CheckExpression(ExpressionKind::kMapping, mapping.expression, value, errors, &own);
      use.verified |= own.verified;
    }
  }
}

void CheckMappings(const JWTConfig& jwt, const FieldPath& root, EmailUse& use, FieldErrors& errors) {
  const FieldPath username = root.Child("username"), uid = root.Child("uid");
  CheckPrefixed(jwt.username, username, true, &use, errors);
  CheckPrefixed(jwt.groups, root.Child("groups"), false, nullptr, errors);
  if (!jwt.uid.claim.empty() && !jwt.uid.expression.empty()) {
    errors.push_back(Invalid(uid, "", "claim and expression can't both be set"));
  } else if (!jwt.uid.expression.empty()) {
    CheckExpression(ExpressionKind::kMapping, jwt.uid.expression, uid.Child("expression"), errors);
  }
  CheckExtra(jwt, root.Child("extra"), use, errors);
  if (use.email && !use.verified) {
    errors.push_back(Invalid(
        username.Child("expression"), jwt.username.expression,
        "claims.email_verified must be used in claimMappings.username.expression or "
        "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
        "claimMappings.username.expression"));
  }
}

void CheckUserRules(const JWTConfig& jwt, const FieldPath& root, FieldErrors& errors) {
  std::set<std::string> expressions;
  for (std::size_t i = 0; i < jwt.user_rules.size(); ++i) {
    const std::string& expression = jwt.user_rules[i].expression;
    const FieldPath item = root.Index(static_cast<std::int64_t>(i));
    const FieldPath path = item.Child("expression");
    if (expression.empty()) {
      errors.push_back(Required(path));
    } else if (!expressions.insert(expression).second) {
      errors.push_back(Duplicate(path, std::string_view(expression)));
    } else {
      CheckExpression(ExpressionKind::kUserRule, expression, path, errors);
    }
  }
}

}  // namespace

void ValidateJWT(const JWTConfig& jwt, const FieldPath& root, const std::vector<std::string>& disallowed_issuers,
                 FieldErrors& errors) {
  EmailUse use;
  CheckIssuer(jwt.issuer, root.Child("issuer"), disallowed_issuers, errors);
  CheckClaimRules(jwt, root.Child("claimValidationRules"), use, errors);
  CheckMappings(jwt, root.Child("claimMappings"), use, errors);
  CheckUserRules(jwt, root.Child("userValidationRules"), errors);
}

FieldErrors ValidateAuthenticationConfig(const AuthenticationConfig& config,
                                         const std::vector<std::string>& disallowed_issuers) {
  FieldErrors errors;
  const FieldPath root("jwt");
  if (config.jwt.size() > AuthenticationConfig::kIssuersMax) {
    errors.push_back(validation::TooMany(root, static_cast<std::int64_t>(config.jwt.size()),
                                         static_cast<std::int64_t>(AuthenticationConfig::kIssuersMax)));
    return errors;
  }
  std::set<std::string> issuers, discoveries;
  for (std::size_t i = 0; i < config.jwt.size(); ++i) {
    const JWTConfig& jwt = config.jwt[i];
    const FieldPath path = root.Index(static_cast<std::int64_t>(i));
    const FieldPath issuer = path.Child("issuer");
    ValidateJWT(jwt, path, disallowed_issuers, errors);
    if (!issuers.insert(jwt.issuer.url).second)
      errors.push_back(Duplicate(issuer.Child("url"), std::string_view(jwt.issuer.url)));
    if (!jwt.issuer.discovery_url.empty() && !discoveries.insert(jwt.issuer.discovery_url).second)
      errors.push_back(Duplicate(issuer.Child("discoveryURL"), std::string_view(jwt.issuer.discovery_url)));
  }
  if (config.anonymous && !config.anonymous->enabled && !config.anonymous->paths.empty()) {
    const FieldPath anonymous("anonymous");
    base::Arena arena;
    Value shown = Value::List(arena);
    for (const std::string& path : config.anonymous->paths) {
      Value condition = Value::Map(arena);
      condition.Set(arena, "Path", std::string_view(path));
      shown.Append(arena, condition);
    }
    errors.push_back(
        Invalid(anonymous.Child("conditions"), shown, "enabled should be set to true when conditions are defined"));
  }
  return errors;
}

}  // namespace keelson::auth
