#include "auth/oidc/authenticator.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "auth/oidc/claims.h"
#include "base/strings.h"
#include "http/message.h"
#include "object/json_text.h"
#include "telemetry/log.h"

namespace keelson::auth {
namespace {

constexpr std::chrono::seconds kDiscoverInterval{10};
constexpr std::string_view kAllowedAlgorithms[] = {"RS256", "RS384", "RS512", "ES256", "ES384",
                                                   "ES512", "PS256", "PS384", "PS512"};

std::string Quoted(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? " " : "") + base::GoQuote(text);
  return out + "]";
}

// The issuer a token names, not verified; "" for text that is not a compact token.
std::string UntrustedIssuer(std::string_view token) {
  if (base::Trim(token).starts_with('{')) return {};
  const auto parts = base::Split(token, '.');
  if (parts.size() != 3) return {};
  const auto payload = base::Base64URLDecode(parts[1]);
  if (!payload) return {};
  base::Arena arena;
  const auto claims = object::ParseJSON(arena, *payload);
  if (!claims || !claims->is_map()) return {};
  const std::string_view issuer = (*claims)["iss"].as_string();
  return issuer == "accounts.google.com" ? "https://accounts.google.com" : std::string(issuer);
}

// The strings a mapping gives; an error for everything else. Empty strings are left out.
Outcome<std::vector<std::string>, std::string> StringList(const ExpressionResult& result) {
  using Type = ExpressionResult::Type;
  std::vector<std::string> texts;
  if (result.type == Type::kString && !result.text.empty()) texts.push_back(result.text);
  if (result.type == Type::kStrings) {
    for (const std::string& text : result.texts) {
      if (!text.empty()) texts.push_back(text);
    }
  }
  if (result.type == Type::kBool || result.type == Type::kOther)
    return std::string("expression must return a string or a list of strings");
  return texts;
}

Value UserValue(base::Arena& arena, const request::User& user) {
  Value value = Value::Map(arena);
  value.Set(arena, "username", Value::String(arena, user.name));
  value.Set(arena, "uid", Value::String(arena, user.uid));
  const auto list = [&](const std::vector<std::string>& texts) {
    Value out = Value::List(arena, texts.size());
    for (const std::string& text : texts) out.Append(arena, Value::String(arena, text));
    return out;
  };
  value.Set(arena, "groups", list(user.groups));
  Value extra = Value::Map(arena);
  for (const auto& [key, values] : user.extra) extra.Set(arena, arena.Copy(key), list(values));
  value.Set(arena, "extra", extra);
  return value;
}

// "" when every rule holds.
std::string CheckExpressions(const std::vector<std::pair<Expression, std::string>>& rules, const Value& input) {
  std::vector<ExpressionResult> results;
  for (const auto& rule : rules) {
    auto result = rule.first.Evaluate(input);
    if (!result.ok()) return result.error();
    results.push_back(*std::move(result));
  }
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (results[i].type != ExpressionResult::Type::kBool) return "validation expression must return a boolean";
    if (!results[i].boolean) return "validation expression '" + rules[i].first.text() + "' failed: " + rules[i].second;
  }
  return {};
}

}  // namespace

JWTAuthenticator::JWTAuthenticator(Options options) : options_(std::move(options)) {}

Outcome<std::shared_ptr<JWTAuthenticator>, std::string> JWTAuthenticator::New(Options options) {
  meta::FieldErrors errors;
  const FieldPath root;
  ValidateJWT(options.config, root, options.disallowed_issuers, errors);
  if (!errors.empty()) return meta::AggregateMessage(errors);
  for (const std::string& algorithm : options.signing_algorithms) {
    if (std::ranges::find(kAllowedAlgorithms, algorithm) == std::end(kAllowedAlgorithms))
      return "oidc: unsupported signing alg: " + base::GoQuote(algorithm);
  }
  std::shared_ptr<JWTAuthenticator> made(new JWTAuthenticator(std::move(options)));
  const JWTConfig& config = made->options_.config;
  OnKeysFetched count;
  if (JWTMetrics* metrics = made->options_.metrics; metrics != nullptr) {
    made->counted_ = std::make_shared<JWTMetrics::Issuer>(config.issuer.url);
    count = [metrics, issuer = made->counted_](const std::string* key_set) { metrics->KeysFetched(*issuer, key_set); };
  }
  made->provider_ = std::make_shared<Provider>(made->options_.fetcher, config.issuer.url, config.issuer.discovery_url,
                                               *made->options_.clock, std::move(count));
  // They compiled a moment ago.
  const auto compile = [&made](ExpressionKind kind, const std::string& text) {
    return *Expression::Compile(kind, text, made->options_.time_zones);
  };
  using enum ExpressionKind;
  if (!config.username.expression.empty()) made->username_ = compile(kMapping, config.username.expression);
  if (!config.groups.expression.empty()) made->groups_ = compile(kMapping, config.groups.expression);
  if (!config.uid.expression.empty()) made->uid_ = compile(kMapping, config.uid.expression);
  for (const auto& mapping : config.extra)
    made->extra_.emplace_back(mapping.key, compile(kMapping, mapping.expression));
  for (const auto& rule : config.claim_rules) {
    if (!rule.expression.empty()) made->claim_rules_.emplace_back(compile(kClaimRule, rule.expression), rule.message);
  }
  for (const auto& rule : config.user_rules)
    made->user_rules_.emplace_back(compile(kUserRule, rule.expression), rule.message);
  return made;
}

Awaitable<void> JWTAuthenticator::Initialize(std::weak_ptr<JWTAuthenticator> weak) {
  for (;;) {
    {
      const auto self = weak.lock();
      if (!self) co_return;
      const auto provider = self->provider_;
      const std::string problem = co_await provider->Discover();
      if (problem.empty()) co_return;
      log::Error("OIDC authenticator is not initialized", "issuer", provider->issuer(), "err", problem);
    }
    asio::steady_timer timer(co_await asio::this_coro::executor, kDiscoverInterval);
    co_await timer.async_wait(kNoThrow);
  }
}

std::string JWTAuthenticator::HealthProblem() const {
  const std::string problem = provider_->problem();
  if (problem.empty()) return {};
  return "oidc: authenticator for issuer " + base::GoQuote(provider_->issuer()) + " is not healthy: " + problem;
}

Awaitable<std::string> JWTAuthenticator::VerifyIDToken(std::shared_ptr<Provider> provider, std::string text,
                                                       bool check_audience) const {
  auto token = ParseToken(text);
  if (!token.ok()) co_return "oidc: malformed jwt: " + token.error();
  const auto& algorithms = options_.signing_algorithms;
  if (std::ranges::find(algorithms, token->algorithm) == algorithms.end()) {
    co_return "oidc: id token signed with unsupported algorithm, expected " + Quoted(algorithms) + " got " +
        base::GoQuote(token->algorithm);
  }
  const std::string payload = token->payload;
  if (std::string error = co_await provider->Verify(*std::move(token)); !error.empty())
    co_return "failed to verify signature: " + error;
  base::Arena arena;
  const auto parsed = IDTokenClaims::Parse(arena, payload);
  if (!parsed.ok()) co_return "oidc: failed to unmarshal claims: " + parsed.error();
  const IDTokenClaims& claims = *parsed;
  if (std::string error = claims.DistributedProblem(); !error.empty()) co_return error;
  const std::string& issuer = provider->issuer();
  if (claims.issuer != issuer && !(issuer == "https://accounts.google.com" && claims.issuer == "accounts.google.com")) {
    co_return "oidc: id token issued by a different provider, expected " + base::GoQuote(issuer) + " got " +
        base::GoQuote(claims.issuer);
  }
  const auto& audiences = options_.config.issuer.audiences;
  const bool one = audiences.size() == 1;
  const bool meant = !IntersectAudiences(audiences, claims.audiences).empty();
  if (check_audience && one && !meant)
    co_return "oidc: expected audience " + base::GoQuote(audiences[0]) + " got " + Quoted(claims.audiences);
  if (std::string error = claims.TimeProblem(options_.clock->Now()); !error.empty()) co_return error;
  if (check_audience && !meant) {
    std::vector<std::string> sorted = audiences;
    std::ranges::sort(sorted);
    co_return "oidc: expected audience in " + Quoted(sorted) + " got " + Quoted(claims.audiences);
  }
  co_return std::string();
}

Outcome<std::shared_ptr<Provider>, std::string> JWTAuthenticator::SourceProvider(const std::string& issuer) {
  std::lock_guard lock(mutex_);
  auto found = sources_.find(issuer);
  if (found == sources_.end()) {
    if (sources_.size() >= kSourceIssuersMax) return std::string("too many issuers of distributed claims");
    found = sources_.emplace(issuer, std::make_shared<Provider>(options_.fetcher, issuer, "", *options_.clock)).first;
  }
  return found->second;
}

namespace {

Awaitable<void> DiscoverSource(std::shared_ptr<Provider> provider) {
  const std::string problem = co_await provider->Discover();
  if (!problem.empty())
    log::Error("Issuer of distributed claims is not initialized", "issuer", provider->issuer(), "err", problem);
}

}  // namespace

Awaitable<std::string> JWTAuthenticator::ExpandGroups(base::Arena& arena, Value claims) {
  const std::string claim = options_.config.groups.claim;
  if (claim.empty() || claims.Has(claim)) co_return std::string();
  auto source = DistributedSource(claims, claim);
  if (!source.ok()) co_return source.error();
  if (!*source || (*source)->endpoint.empty()) co_return std::string();
  auto fetched = co_await options_.fetcher->Get((*source)->endpoint, (*source)->access_token);
  const std::string getting = "while getting distributed claim " + base::GoQuote(claim) + ": ";
  if (!fetched.ok()) co_return getting + fetched.error();
  if (fetched->status < 200 || fetched->status > 226) {
    co_return getting + "error while getting distributed claim JWT: " + std::to_string(fetched->status) + " " +
        std::string(http::StatusText(fetched->status));
  }
  const std::string issuer = UntrustedIssuer(fetched->body);
  if (issuer.empty()) {
    co_return "getting untrusted issuer from endpoint " + (*source)->endpoint + " failed for claim " +
        base::GoQuote(claim) + ": malformed token";
  }
  auto provider = SourceProvider(issuer);
  if (!provider.ok()) co_return provider.error();
  if (!(*provider)->ready()) {
    auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, DiscoverSource(*provider), asio::detached);
    co_return "verifying untrusted issuer " + issuer +
        " failed: verifier not initialized for issuer: " + base::GoQuote(issuer);
  }
  if (std::string error = co_await VerifyIDToken(*provider, fetched->body, true); !error.empty())
    co_return "verify distributed claim token: " + error;
  const auto token = ParseToken(fetched->body);
  const auto payload = token.ok() ? object::ParseJSON(arena, token->payload) : std::nullopt;
  if (!payload || !payload->Has(claim)) {
    co_return "jwt returned by distributed claim endpoint " + base::GoQuote((*source)->endpoint) +
        " did not contain claim: " + claim;
  }
  claims.Set(arena, arena.Copy(claim), (*payload)[claim]);
  co_return std::string();
}

std::string JWTAuthenticator::MapName(Value claims, request::User& user) const {
  if (username_) {
    auto result = username_->Evaluate(claims);
    const std::string prefix = "oidc: error evaluating username claim expression: ";
    if (!result.ok()) return prefix + result.error();
    if (result->type != ExpressionResult::Type::kString)
      return prefix + "username claim expression must return a string";
    if (result->text.empty()) return "oidc: empty username via CEL expression is not allowed";
    user.name = result->text;
    return {};
  }
  const auto& mapping = options_.config.username;
  if (std::string error = ClaimText(claims, mapping.claim, user.name); !error.empty())
    return "oidc: parse username claims " + base::GoQuote(mapping.claim) + ": " + error;
  if (mapping.claim == "email" && claims.Has("email_verified")) {
    const Value verified = claims["email_verified"];
    if (!verified.is_bool() && !verified.is_null())
      return "oidc: parse 'email_verified' claim: " + CannotUnmarshal(verified, "Go value of type bool");
    if (!verified.is_bool() || !verified.as_bool()) return "oidc: email not verified";
  }
  user.name = mapping.prefix.value_or("") + user.name;
  return {};
}

std::string JWTAuthenticator::MapGroups(Value claims, request::User& user) const {
  const auto& mapping = options_.config.groups;
  if (!mapping.claim.empty() && claims.Has(mapping.claim)) {
    if (std::string error = ClaimTexts(claims[mapping.claim], user.groups); !error.empty())
      return "oidc: parse groups claim " + base::GoQuote(mapping.claim) + ": " + error;
    for (std::string& group : user.groups) group = mapping.prefix.value_or("") + group;
    return {};
  }
  if (!groups_) return {};
  const std::string prefix = "oidc: error evaluating group claim expression: ";
  auto result = groups_->Evaluate(claims);
  if (!result.ok()) return prefix + result.error();
  auto texts = StringList(*result);
  if (!texts.ok()) return prefix + texts.error();
  user.groups = *std::move(texts);
  return {};
}

std::string JWTAuthenticator::MapUID(Value claims, request::User& user) const {
  const auto& mapping = options_.config.uid;
  if (!mapping.claim.empty()) {
    const std::string error = ClaimText(claims, mapping.claim, user.uid);
    return error.empty() ? error : "oidc: parse uid claim " + base::GoQuote(mapping.claim) + ": " + error;
  }
  if (!uid_) return {};
  const std::string prefix = "oidc: error evaluating uid claim expression: ";
  auto result = uid_->Evaluate(claims);
  if (!result.ok()) return prefix + result.error();
  if (result->type != ExpressionResult::Type::kString) return prefix + "uid claim expression must return a string";
  user.uid = result->text;
  return {};
}

std::string JWTAuthenticator::MapExtra(Value claims, request::User& user) const {
  std::map<std::string, std::vector<std::string>> extra;
  if (const Value id = claims["jti"]; id.is_string() && !id.as_string().empty())
    extra["authentication.kubernetes.io/credential-id"] = {"JTI=" + std::string(id.as_string())};
  std::vector<ExpressionResult> results;
  for (const auto& [key, expression] : extra_) {
    auto result = expression.Evaluate(claims);
    if (!result.ok()) return result.error();
    results.push_back(*std::move(result));
  }
  for (std::size_t i = 0; i < extra_.size(); ++i) {
    auto texts = StringList(results[i]);
    if (!texts.ok()) {
      return "oidc: error evaluating extra claim expression: " + extra_[i].second.text() + ": " + texts.error();
    }
    if (!texts->empty()) extra[extra_[i].first] = *std::move(texts);
  }
  user.extra.assign(std::make_move_iterator(extra.begin()), std::make_move_iterator(extra.end()));
  return {};
}

std::string JWTAuthenticator::CheckRules(base::Arena& arena, Value claims, const request::User& user) const {
  for (const auto& rule : options_.config.claim_rules) {
    if (rule.claim.empty()) continue;
    if (!claims.Has(rule.claim)) return "oidc: required claim " + rule.claim + " not present in ID token";
    std::string text;
    if (std::string error = ClaimText(claims, rule.claim, text); !error.empty())
      return "oidc: parse claim " + rule.claim + ": " + error;
    if (text != rule.required_value) {
      return "oidc: required claim " + rule.claim + " value does not match. Got = " + text +
             ", want = " + rule.required_value;
    }
  }
  if (!claim_rules_.empty()) {
    if (std::string error = CheckExpressions(claim_rules_, claims); !error.empty())
      return "oidc: error evaluating claim validation expression: " + error;
  }
  if (!user_rules_.empty()) {
    if (std::string error = CheckExpressions(user_rules_, UserValue(arena, user)); !error.empty())
      return "oidc: error evaluating user info validation rule: " + error;
  }
  return {};
}

std::string JWTAuthenticator::MapUser(base::Arena& arena, Value claims, request::User& user) const {
  if (std::string error = MapName(claims, user); !error.empty()) return error;
  if (std::string error = MapGroups(claims, user); !error.empty()) return error;
  if (std::string error = MapUID(claims, user); !error.empty()) return error;
  if (std::string error = MapExtra(claims, user); !error.empty()) return error;
  return CheckRules(arena, claims, user);
}

Awaitable<AuthenticationResult> JWTAuthenticator::AuthenticateToken(std::string token,
                                                                    std::vector<std::string> audiences) {
  static_cast<void>(audiences);
  const auto self = shared_from_this();
  if (UntrustedIssuer(token) != options_.config.issuer.url) co_return AuthenticationResult();
  const auto started = options_.clock->Monotonic();
  AuthenticationResult result = co_await Authenticate(std::move(token));
  if (options_.metrics != nullptr) {
    const std::chrono::duration<double> took = options_.clock->Monotonic() - started;
    options_.metrics->Authenticated(options_.config.issuer.url, result.user.has_value(), took.count());
  }
  co_return result;
}

Awaitable<AuthenticationResult> JWTAuthenticator::Authenticate(std::string token) {
  if (!provider_->ready()) co_return AuthenticationResult::Failed("oidc: authenticator not initialized");
  if (std::string error = co_await VerifyIDToken(provider_, token, true); !error.empty())
    co_return AuthenticationResult::Failed("oidc: verify token: " + error);
  base::Arena arena;
  const auto parsed = ParseToken(token);
  auto claims = parsed.ok() ? object::ParseJSON(arena, parsed->payload) : std::nullopt;
  if (!claims || !claims->is_map()) co_return AuthenticationResult::Failed("oidc: parse claims: not a JSON object");
  if (std::string error = co_await ExpandGroups(arena, *claims); !error.empty())
    co_return AuthenticationResult::Failed("oidc: could not expand distributed claims: " + error);
  request::User user;
  if (std::string error = MapUser(arena, *claims, user); !error.empty())
    co_return AuthenticationResult::Failed(std::move(error));
  AuthenticationResult result;
  result.user = std::move(user);
  co_return result;
}

void JWTAuthenticator::Retire(JWTMetrics::Series series) {
  if (options_.metrics != nullptr) options_.metrics->Retire(*counted_, series);
}

void JWTAuthenticators::Replace(Set next) {
  const auto shared = std::make_shared<const Set>(std::move(next));
  const auto before = [&] {
    std::lock_guard lock(mutex_);
    return std::exchange(set_, shared);
  }();
  for (const auto& old : *before) {
    const bool stays = std::ranges::any_of(*shared, [&](const auto& now) { return now->issuer() == old->issuer(); });
    old->Retire(stays ? JWTMetrics::Series::kKeep : JWTMetrics::Series::kForget);
  }
}

std::shared_ptr<const JWTAuthenticators::Set> JWTAuthenticators::set() const {
  std::lock_guard lock(mutex_);
  return set_;
}

Awaitable<AuthenticationResult> JWTAuthenticators::AuthenticateToken(std::string token,
                                                                     std::vector<std::string> audiences) {
  const auto present = set();
  for (const auto& authenticator : *present) {
    AuthenticationResult answer = co_await authenticator->AuthenticateToken(token, audiences);
    if (answer.user || !answer.errors.empty()) co_return answer;
  }
  co_return AuthenticationResult();
}

}  // namespace keelson::auth
