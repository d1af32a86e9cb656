#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <map>

#include "async/testing/run_now.h"
#include "auth/oidc/authenticator.h"
#include "auth/oidc/claims.h"
#include "auth/oidc/metrics.h"
#include "base/fake_clock.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::auth {
namespace {

using async::RunNow;

SigningKey NewKey() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  auto parsed = SigningKey::Parse({data, static_cast<std::size_t>(size)});
  BIO_free(bio);
  EVP_PKEY_free(key);
  return *std::move(parsed);
}

class FakeIssuer final : public DocumentFetcher {
 public:
  std::map<std::string, FetchedDocument> documents;
  std::map<std::string, int> calls;
  std::string last_token;
  Awaitable<Outcome<FetchedDocument, std::string>> Get(std::string url, std::string bearer_token) override {
    ++calls[url];
    last_token = bearer_token;
    const auto found = documents.find(url);
    if (found == documents.end()) co_return "Get \"" + url + "\": connection refused";
    co_return found->second;
  }
  void Serve(const std::string& issuer, const std::vector<PublicKey>& keys) {
    documents[issuer + "/.well-known/openid-configuration"] = {
        .status = 200, .body = R"({"issuer":")" + issuer + R"(","jwks_uri":")" + issuer + R"(/keys"})"};
    documents[issuer + "/keys"] = {.status = 200, .body = KeySetDocument(keys)};
  }
};

class OIDC : public ::testing::Test {
 protected:
  static constexpr const char* kIssuer = "https://issuer.example.com";
  OIDC() {
    issuer_->Serve(kIssuer, {key_.public_key()});
    config_.issuer = {.url = kIssuer, .audiences = {"client"}};
    config_.username = {.claim = "sub", .prefix = "p:"};
    config_.groups = {.claim = "groups", .prefix = "g:"};
    now_ = std::chrono::floor<std::chrono::seconds>(clock_.Now()).time_since_epoch().count();
  }
  std::shared_ptr<JWTAuthenticator> Make() {
    auto made = JWTAuthenticator::New(
        {.config = config_, .signing_algorithms = {"RS256", "ES256"}, .fetcher = issuer_, .clock = &clock_});
    EXPECT_TRUE(made.ok()) << made.error();
    RunNow(JWTAuthenticator::Initialize(*made));
    return *made;
  }
  std::string Claims(const std::string& more) const {
    return R"({"iss":")" + std::string(kIssuer) + R"(","aud":"client","exp":)" + std::to_string(now_ + 60) + more + "}";
  }
  base::FakeClock clock_;
  std::int64_t now_ = 0;
  SigningKey key_ = NewKey();
  std::shared_ptr<FakeIssuer> issuer_ = std::make_shared<FakeIssuer>();
  JWTConfig config_;
};

TEST_F(OIDC, MapsClaims) {
  config_.uid = {.claim = "uid"};
  config_.claim_rules = {{.claim = "hd", .required_value = "example.com"}};
  const auto authenticator = Make();
  struct Case {
    const char* name;
    const char* claims;
    const char* user;  // "" for none
    const char* error;
  };
  constexpr Case kCases[] = {
      {"all", R"(,"sub":"a","groups":["x","y"],"uid":"u","hd":"example.com","jti":"j")", "p:a u g:x g:y JTI=j", ""},
      {"one group", R"(,"sub":"a","groups":"x","uid":"u","hd":"example.com")", "p:a u g:x", ""},
      {"no groups", R"(,"sub":"","uid":"u","hd":"example.com")", "p: u", ""},
      {"no sub", R"(,"uid":"u","hd":"example.com")", "", R"(oidc: parse username claims "sub": claim not present)"},
      {"no uid", R"(,"sub":"a","hd":"example.com")", "", R"(oidc: parse uid claim "uid": claim not present)"},
      {"groups of numbers", R"(,"sub":"a","groups":[1],"uid":"u","hd":"example.com")", "",
       R"(oidc: parse groups claim "groups": json: cannot unmarshal array into Go value of type string)"},
      {"no required claim", R"(,"sub":"a","uid":"u")", "", "oidc: required claim hd not present in ID token"},
      {"required claim differs", R"(,"sub":"a","uid":"u","hd":"evil")", "",
       "oidc: required claim hd value does not match. Got = evil, want = example.com"},
      {"sub is a number", R"(,"sub":7)", "",
       "oidc: verify token: oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field "
       "idToken.sub of type string"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto result = RunNow(authenticator->AuthenticateToken(key_.Sign(Claims(c.claims)), {}));
    EXPECT_EQ(result.Error(), c.error);
    std::string user;
    if (result.user) {
      user = result.user->name + " " + result.user->uid;
      for (const auto& group : result.user->groups) user += " " + group;
      for (const auto& [key, values] : result.user->extra) user += " " + values[0];
    }
    EXPECT_EQ(user, c.user);
  }
}

TEST_F(OIDC, VerifiesTokens) {
  const auto authenticator = Make();
  const SigningKey other = NewKey();
  const auto ask = [&](const std::string& token) {
    const auto result = RunNow(authenticator->AuthenticateToken(token, {}));
    return result.user ? "ok" : result.Error();
  };
  const std::string prefix = "oidc: verify token: ";
  const std::string rest = R"(,"sub":"a"})";
  const std::string head = R"({"iss":")" + std::string(kIssuer) + R"(","aud":)";
  const std::string exp = R"(,"exp":)" + std::to_string(now_ + 60);
  EXPECT_EQ(ask(key_.Sign(Claims(R"(,"sub":"a")"))), "ok");
  EXPECT_EQ(ask(other.Sign(Claims(R"(,"sub":"a")"))),
            prefix + "failed to verify signature: failed to verify id token signature");
  EXPECT_EQ(ask(key_.Sign(head + R"(["x","client"])" + exp + rest)), "ok");
  EXPECT_EQ(ask(key_.Sign(head + R"("x")" + exp + rest)), prefix + R"(oidc: expected audience "client" got ["x"])");
  EXPECT_EQ(ask(key_.Sign(head + R"("client")" + rest)),
            prefix + "oidc: token is expired (Token Expiry: 0001-01-01 00:00:00 +0000 UTC)");
  EXPECT_EQ(ask(key_.Sign(head + R"("client","exp":1)" + rest)),
            prefix + "oidc: token is expired (Token Expiry: 1970-01-01 00:00:01 +0000 UTC)");
  EXPECT_TRUE(ask(key_.Sign(head + R"("client","nbf":)" + std::to_string(now_ + 61) + exp + rest))
                  .starts_with(prefix + "oidc: current time "));
  EXPECT_EQ(ask(key_.Sign(head + R"("client","nbf":)" + std::to_string(now_ + 59) + exp + rest)), "ok");
  EXPECT_EQ(ask(key_.Sign(head + R"("client","exp":1e300)" + rest)), "ok");
  EXPECT_EQ(ask(key_.Sign(R"({"iss":"https://other","sub":"a"})")), "");  // of another issuer
  EXPECT_EQ(ask("x"), "");
}

TEST_F(OIDC, KeyFetchesAreBounded) {
  const auto authenticator = Make();
  const SigningKey other = NewKey();
  const std::string keys = std::string(kIssuer) + "/keys";
  RunNow(authenticator->AuthenticateToken(key_.Sign(Claims(R"(,"sub":"a")")), {}));
  EXPECT_EQ(issuer_->calls[keys], 1);
  for (int i = 0; i < 100; ++i)
    RunNow(authenticator->AuthenticateToken(other.Sign(Claims(R"(,"n":)" + std::to_string(i))), {}));
  EXPECT_LE(issuer_->calls[keys], 1 + static_cast<int>(Provider::kFetchBurst));
  // A new key of the issuer is found as soon as a fetch is allowed again.
  issuer_->Serve(kIssuer, {other.public_key()});
  clock_.Advance(Provider::kFetchInterval);
  EXPECT_TRUE(RunNow(authenticator->AuthenticateToken(other.Sign(Claims(R"(,"sub":"a")")), {})).user);
}

TEST_F(OIDC, UnavailableOrInvalidIssuer) {
  auto made = JWTAuthenticator::New({.config = config_, .signing_algorithms = {"ES256"}, .fetcher = issuer_});
  ASSERT_TRUE(made.ok());
  EXPECT_NE((*made)->HealthProblem(), "");
  const std::string token = key_.Sign(Claims(R"(,"sub":"a")"));
  EXPECT_EQ(RunNow((*made)->AuthenticateToken(token, {})).Error(), "oidc: authenticator not initialized");
  Provider lying(issuer_, "https://issuer.example.com/x", std::string(kIssuer) + "/.well-known/openid-configuration");
  EXPECT_EQ(RunNow(lying.Discover()),
            "oidc: issuer did not match the issuer returned by provider, expected \"https://issuer.example.com/x\" got "
            "\"https://issuer.example.com\"");
}

TEST_F(OIDC, DistributedGroups) {
  const auto authenticator = Make();
  issuer_->documents["https://claims.example.com/g"] = {.status = 200, .body = key_.Sign(Claims(R"(,"groups":["d"])"))};
  const std::string token = key_.Sign(Claims(
      R"(,"sub":"a","_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"https://claims.example.com/g","access_token":"secret"}})"));
  // The first token starts the verifier of the source's issuer.
  EXPECT_EQ(RunNow(authenticator->AuthenticateToken(token, {})).Error(),
            "oidc: could not expand distributed claims: verifying untrusted issuer https://issuer.example.com failed: "
            "verifier not initialized for issuer: \"https://issuer.example.com\"");
  const auto result = RunNow(authenticator->AuthenticateToken(token, {}));
  ASSERT_TRUE(result.user) << result.Error();
  EXPECT_EQ(result.user->groups, std::vector<std::string>{"g:d"});
}

TEST_F(OIDC, EmailMustBeVerifiedWhereTheTokenSaysSo) {
  config_.username = {.claim = "email", .prefix = ""};
  const auto authenticator = Make();
  const auto ask = [&](const char* claims) {
    const auto result = RunNow(authenticator->AuthenticateToken(key_.Sign(Claims(claims)), {}));
    return result.user ? result.user->name : result.Error();
  };
  EXPECT_EQ(ask(R"(,"email":"e")"), "e");
  EXPECT_EQ(ask(R"(,"email":"e","email_verified":true)"), "e");
  EXPECT_EQ(ask(R"(,"email":"e","email_verified":false)"), "oidc: email not verified");
  EXPECT_EQ(ask(R"(,"email":"e","email_verified":"true")"),
            "oidc: parse 'email_verified' claim: json: cannot unmarshal string into Go value of type bool");
}

TEST_F(OIDC, ExpressionsMapAndValidateClaims) {
  config_.username = {.expression = "'b:' + claims.sub"};
  config_.groups = {.expression = "has(claims.csv) ? claims.csv.split(',') : has(claims.roles) ? claims.roles : []"};
  config_.uid = {.expression = "claims.?uid.orValue('none')"};
  config_.extra = {{.key = "example.com/one", .expression = "claims.?one.orValue('')"}};
  config_.claim_rules = {{.expression = "!has(claims.banned) || !claims.banned", .message = "you are banned"}};
  config_.user_rules = {{.expression = "user.groups.all(g, !g.startsWith('system:'))", .message = "reserved"}};
  const auto authenticator = Make();
  struct Case {
    const char* name;
    const char* claims;
    const char* user;  // "" for none
    const char* error;
  };
  constexpr Case kCases[] = {
      {"plain", R"(,"sub":"a")", "b:a none", ""},
      {"all", R"(,"sub":"a","roles":["x","","y"],"uid":"u","one":"1")", "b:a u x y 1", ""},
      {"one role", R"(,"sub":"a","roles":"x")", "b:a none x", ""},
      {"list of Go strings", R"(,"sub":"a","csv":"x,y")", "",
       "oidc: error evaluating group claim expression: expression must return a string or a list of strings"},
      {"roles of numbers", R"(,"sub":"a","roles":[1])", "",
       "oidc: error evaluating group claim expression: expression must return a string or a list of strings"},
      {"uid is a number", R"(,"sub":"a","uid":7)", "",
       "oidc: error evaluating uid claim expression: uid claim expression must return a string"},
      {"rule", R"(,"sub":"a","banned":true)", "",
       "oidc: error evaluating claim validation expression: validation expression '!has(claims.banned) || "
       "!claims.banned' failed: you are banned"},
      {"rule of another type", R"(,"sub":"a","banned":"yes")", "",
       "oidc: error evaluating claim validation expression: expression '!has(claims.banned) || !claims.banned' "
       "resulted in error: no such overload"},
      {"user rule", R"(,"sub":"a","roles":["system:masters"])", "",
       "oidc: error evaluating user info validation rule: validation expression 'user.groups.all(g, "
       "!g.startsWith('system:'))' failed: reserved"},
      {"no sub", "", "",
       "oidc: error evaluating username claim expression: expression ''b:' + claims.sub' resulted in error: no such "
       "key: sub"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto result = RunNow(authenticator->AuthenticateToken(key_.Sign(Claims(c.claims)), {}));
    EXPECT_EQ(result.Error(), c.error);
    std::string user;
    if (result.user) {
      user = result.user->name + " " + result.user->uid;
      for (const auto& group : result.user->groups) user += " " + group;
      for (const auto& [key, values] : result.user->extra) user += " " + values[0];
    }
    EXPECT_EQ(user, c.user);
  }
}

TEST(Expressions, NumbersAreDoublesAndNamesMayBeEscaped) {
  base::Arena arena;
  const Value claims = *object::ParseJSON(arena, R"({"n":2,"a.b":"dotted"})");
  const auto evaluate = [&](const std::string& text) {
    const auto expression = Expression::Compile(ExpressionKind::kMapping, text);
    EXPECT_TRUE(expression.ok()) << expression.error();
    const auto result = expression->Evaluate(claims);
    return result.ok() ? result->text : result.error();
  };
  EXPECT_EQ(evaluate("type(claims.n) == double ? 'double' : 'other'"), "double");
  EXPECT_EQ(evaluate("claims.a__dot__b"), "dotted");
  EXPECT_EQ(evaluate("claims['a.b']"), "dotted");
}

TEST(Expressions, ErrorsInUpstreamsWords) {
  EXPECT_EQ(Expression::Compile(ExpressionKind::kClaimRule, "claims.ok").error(), "must evaluate to bool");
  EXPECT_TRUE(Expression::Compile(ExpressionKind::kMapping, "1 + 1").ok());
  EXPECT_EQ(Expression::Compile(ExpressionKind::kMapping, "user.username").error(),
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'user' (in container '')\n | "
            "user.username\n | ^");
  EXPECT_TRUE(Expression::Compile(ExpressionKind::kMapping, "claims.?email.orValue('')")->UsesClaim("email"));
  EXPECT_FALSE(Expression::Compile(ExpressionKind::kMapping, "claims.email_verified")->UsesClaim("email"));
}

TEST(AuthenticationConfiguration, ErrorsInUpstreamsWords) {
  const std::string head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
  const auto validate = [&](const std::string& rest) {
    const auto config = ParseAuthenticationConfig(head + rest);
    return config.ok() ? meta::AggregateMessage(ValidateAuthenticationConfig(*config, {})) : config.error();
  };
  struct Case {
    const char* name;
    const char* rest;
    const char* want;
  };
  constexpr Case kCases[] = {
      {"good",
       "jwt: [{issuer: {url: 'https://a', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]", ""},
      {"no url", "jwt: [{issuer: {audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]",
       "jwt[0].issuer.url: Required value"},
      {"http",
       "jwt: [{issuer: {url: 'http://a', audiences: [a]}, claimMappings: {username: {claim: sub, prefix: ''}}}]",
       R"(jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https)"},
      {"no prefix", "jwt: [{issuer: {url: 'https://a', audiences: [a]}, claimMappings: {username: {claim: sub}}}]",
       "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to "
       "an "
       "empty string to disable prefixing"},
      {"no audiences", "jwt: [{issuer: {url: 'https://a'}, claimMappings: {username: {claim: sub, prefix: ''}}}]",
       "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"},
      {"unknown field", "jwts: []", R"(strict decoding error: unknown field "jwts")"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(validate(c.rest), c.want);
  }
  EXPECT_EQ(ParseAuthenticationConfig("").error(), "empty config data");
  // Whole texts; the rows are kube-apiserver's results.
  constexpr std::pair<const char*, const char*> kTexts[] = {
      {"null", "Object 'Kind' is missing in 'null'"},
      {"{\"a\":1}", "Object 'Kind' is missing in '{\"a\":1}'"},
      {"{kind: AuthenticationConfiguration}",
       "couldn't get version/kind; json parse error: invalid character 'k' looking for beginning of object key string"},
      {"{} x", "couldn't get version/kind; json parse error: invalid character 'x' after top-level value"},
      {"a: b: c", "yaml: mapping values are not allowed in this context"},
      {"{\"kind\":\"AuthenticationConfiguration\",\"apiVersion\":\"a/b/c\"}", "unexpected GroupVersion string: a/b/c"},
      {"{\"kind\":\"TracingConfiguration\",\"apiVersion\":\"apiserver.config.k8s.io/v1\"}",
       "expected AuthenticationConfiguration, got *apiserver.TracingConfiguration"},
  };
  for (const auto& [text, want] : kTexts) {
    SCOPED_TRACE(text);
    const auto config = ParseAuthenticationConfig(text);
    EXPECT_EQ(config.ok() ? "" : config.error(), want);
  }
}

TEST(JWTMetrics, KeySetsAndReloads) {
  telemetry::MetricsRegistry registry;
  JWTMetrics metrics(registry, "server");
  auto issuer = std::make_shared<FakeIssuer>();
  const std::string url = "https://issuer.example.com";
  const JWTMetrics::Issuer counted(url);
  const SigningKey key = NewKey();
  issuer->Serve(url, {key.public_key()});
  const std::string first = issuer->documents[url + "/keys"].body;
  const auto provider = std::make_shared<Provider>(issuer, url, "", base::Clock::Real(),
                                                   [&](const std::string* set) { metrics.KeysFetched(counted, set); });
  ASSERT_EQ(RunNow(provider->Discover()), "");
  const auto token = ParseToken(key.Sign("{}"));
  ASSERT_EQ(RunNow(provider->Verify(*token)), "");
  const std::string labels = "apiserver_id_hash=\"" + MetricHash("server") + "\"";
  const std::string of = ",jwt_issuer_hash=\"" + MetricHash(url) + "\"";
  const std::string info = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info{";
  const auto has = [&](const std::string& text) { return registry.Expose().find("\n" + text) != std::string::npos; };
  EXPECT_TRUE(has(info + labels + ",hash=\"" + MetricHash(first) + "\"" + of + "} 1\n")) << registry.Expose();
  const std::string fetched = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds{";
  EXPECT_TRUE(has(fetched + labels + of + ",result=\"success\"}"));
  EXPECT_FALSE(has(fetched + labels + of + ",result=\"failure\"}"));

  const SigningKey other = NewKey();
  issuer->Serve(url, {other.public_key()});
  ASSERT_EQ(RunNow(provider->Verify(*ParseToken(other.Sign("{}")))), "");
  EXPECT_FALSE(has(info + labels + ",hash=\"" + MetricHash(first) + "\""));
  issuer->documents.erase(url + "/keys");
  EXPECT_NE(RunNow(provider->Verify(*ParseToken(NewKey().Sign("{}")))), "");
  EXPECT_TRUE(has(fetched + labels + of + ",result=\"failure\"}"));

  metrics.Configured("one");
  const std::string two = "two";
  metrics.Reloaded(&two);
  metrics.Reloaded(nullptr);
  const std::string controller = "apiserver_authentication_config_controller_";
  EXPECT_TRUE(has(controller + "last_config_info{" + labels + ",hash=\"" + MetricHash("two") + "\"} 1\n"));
  EXPECT_FALSE(has(controller + "last_config_info{" + labels + ",hash=\"" + MetricHash("one") + "\"}"));
  for (const char* const status : {"success", "failure"}) {
    EXPECT_TRUE(has(controller + "automatic_reloads_total{" + labels + ",status=\"" + status + "\"} 1\n"));
    EXPECT_TRUE(has(controller + "automatic_reload_last_timestamp_seconds{" + labels + ",status=\"" + status + "\"}"));
  }
}

TEST(JWTMetrics, SeriesOfRemovedIssuersGo) {
  telemetry::MetricsRegistry registry;
  JWTMetrics metrics(registry, "server");
  const auto issuer = std::make_shared<FakeIssuer>();
  const SigningKey key = NewKey();
  const std::string stays = "https://stays.example.com", goes = "https://goes.example.com";
  const auto make = [&](const std::string& url) {
    JWTConfig config;
    config.issuer.url = url;
    config.issuer.audiences = {"app"};
    config.username.expression = "claims.sub";
    issuer->Serve(url, {key.public_key()});
    auto made = JWTAuthenticator::New(
        {.config = config, .signing_algorithms = {"ES256"}, .fetcher = issuer, .metrics = &metrics});
    EXPECT_TRUE(made.ok());
    RunNow(JWTAuthenticator::Initialize(*made));
    return *made;
  };
  const auto fetch = [&](JWTAuthenticator& authenticator) {
    const std::string claims = R"({"iss":")" + authenticator.issuer() + R"(","aud":"app","sub":"me","exp":9999999999})";
    (void)RunNow(authenticator.AuthenticateToken(key.Sign(claims), {}));
  };
  const auto series = [&](const std::string& url) {
    const std::string text = registry.Expose(), label = "jwt_issuer_hash=\"" + MetricHash(url) + "\"";
    int found = 0;
    for (const std::string_view line : base::Split(text, '\n'))
      found += line.starts_with("apiserver_authentication_jwt_authenticator_jwks_") && line.contains(label);
    return found;
  };
  const auto replaced = make(stays), removed = make(goes), next = make(stays);
  JWTAuthenticators all({replaced, removed});
  fetch(*replaced);
  fetch(*removed);
  EXPECT_EQ(series(stays), 2);
  EXPECT_EQ(series(goes), 2);
  all.Replace({next});
  EXPECT_EQ(series(stays), 2);
  EXPECT_EQ(series(goes), 0);
  issuer->documents.erase(goes + "/keys");
  (void)RunNow(removed->AuthenticateToken(
      NewKey().Sign(R"({"iss":")" + goes + R"(","aud":"app","sub":"me","exp":9999999999})"), {}));
  EXPECT_EQ(series(goes), 0) << "a fetch that ends after the removal";
  all.Replace({make(goes)});
  fetch(*all.set()->front());
  EXPECT_EQ(series(stays), 0);
  EXPECT_EQ(series(goes), 2) << "configured again";
}

}  // namespace
}  // namespace keelson::auth
