#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <map>

#include "async/testing/run_now.h"
#include "auth/service_account/authenticator.h"
#include "base/fake_clock.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::auth {
namespace {

using async::RunNow;

std::string PEMOf(EVP_PKEY* key, bool with_private) {
  BIO* bio = BIO_new(BIO_s_mem());
  with_private ? PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr)
               : PEM_write_bio_PUBKEY(bio, key);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return pem;
}

struct Pair {
  std::string private_pem, public_pem;
};
Pair Generate(std::string_view algorithm) {
  EVP_PKEY* key = algorithm == "RS256"   ? EVP_RSA_gen(2048)
                  : algorithm == "ES256" ? EVP_EC_gen("P-256")
                  : algorithm == "ES384" ? EVP_EC_gen("P-384")
                                         : EVP_EC_gen("P-521");
  Pair pair{PEMOf(key, true), PEMOf(key, false)};
  EVP_PKEY_free(key);
  return pair;
}

// RFC 7515, appendix A.3.
constexpr std::string_view kRFCKey =
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7\n"
    "6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==\n"
    "-----END PUBLIC KEY-----\n";
constexpr std::string_view kRFCToken =
    "eyJhbGciOiJFUzI1NiJ9."
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";

TEST(Keys, VerifiesTheVectorOfRFC7515) {
  const auto keys = ParsePublicKeys(kRFCKey);
  ASSERT_TRUE(keys.ok());
  const auto token = ParseToken(kRFCToken);
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(VerifyToken(*token, *keys), "");
  EXPECT_EQ((*keys)[0].JWK(), R"({"use":"sig","kty":"EC","kid":")" + (*keys)[0].id() +
                                  R"(","crv":"P-256","alg":"ES256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
                                  R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})");
  std::string changed(kRFCToken);
  changed[30] = changed[30] == 'A' ? 'B' : 'A';
  EXPECT_NE(VerifyToken(*ParseToken(changed), *keys), "");
}

TEST(Keys, SignsWithEveryAlgorithm) {
  for (const std::string_view algorithm : {"RS256", "ES256", "ES384", "ES512"}) {
    SCOPED_TRACE(algorithm);
    const Pair pair = Generate(algorithm), other = Generate(algorithm);
    const auto key = SigningKey::Parse(pair.private_pem);
    ASSERT_TRUE(key.ok());
    const auto keys = ParsePublicKeys(other.public_pem + pair.public_pem);
    ASSERT_TRUE(keys.ok());
    ASSERT_EQ(keys->size(), 2u);
    EXPECT_EQ((*keys)[1].id(), key->public_key().id());
    for (int i = 0; i < 8; ++i) {  // signatures differ in their leading zeros
      const std::string text = key->Sign(R"({"n":)" + std::to_string(i) + "}");
      const auto token = ParseToken(text);
      ASSERT_TRUE(token.ok());
      EXPECT_EQ(token->algorithm, algorithm);
      EXPECT_EQ(VerifyToken(*token, *keys), "");
      EXPECT_EQ(VerifyToken(*token, {(*keys)[0]}), "invalid signature, no keys found");
    }
  }
  EXPECT_FALSE(SigningKey::Parse(Generate("ES256").public_pem).ok());
  EXPECT_FALSE(ParsePublicKeys("nothing").ok());
}

TEST(Keys, DoesNotTrustTheHeadersAlgorithm) {
  const Pair pair = Generate("ES256");
  const auto keys = *ParsePublicKeys(pair.public_pem);
  for (const std::string_view header : {R"({"alg":"none"})", R"({"alg":"HS256"})", R"({"alg":"RS256"})"}) {
    const std::string text =
        base::Base64URLEncode(header) + "." + base::Base64URLEncode("{}") + "." + base::Base64URLEncode("x");
    const auto token = ParseToken(text);
    ASSERT_TRUE(token.ok());
    EXPECT_NE(VerifyToken(*token, keys), "");
  }
  for (const char* text : {"", ".", "..", "a.b", "a.b.c.d", "!.!.!"}) EXPECT_TRUE(!ParseToken(text).ok()) << text;
}

TEST(Claims, MembersAreSorted) {
  TokenClaims claims{.issuer = "i",
                     .subject = "s",
                     .id = "j",
                     .audiences = {"a"},
                     .expires = 3,
                     .not_before = 1,
                     .issued_at = 2,
                     .name_space = "ns",
                     .service_account = {"n", "0a1b2c3d-long-enough-not-to-stand-in-the-string"},
                     .pod = ObjectClaim{"p", "pu"},
                     .node = ObjectClaim{"node", ""},
                     .warn_after = 9};
  EXPECT_EQ(
      claims.ToJSON(),
      R"({"aud":["a"],"exp":3,"iat":2,"iss":"i","jti":"j","kubernetes.io":{"namespace":"ns","node":{"name":"node"},)"
      R"("pod":{"name":"p","uid":"pu"},"serviceaccount":{"name":"n","uid":"0a1b2c3d-long-enough-not-to-stand-in-the-string"},"warnafter":9},"nbf":1,"sub":"s"})");
  base::Arena arena;
  EXPECT_EQ(TokenClaims::From(*object::ParseJSON(arena, claims.ToJSON())).ToJSON(), claims.ToJSON());
}

class FakeObjects final : public TokenObjects {
 public:
  std::map<std::string, TokenObject> objects;  // resource/namespace/name
  Awaitable<Outcome<std::optional<TokenObject>, std::string>> Get(std::string resource, std::string name_space,
                                                                  std::string name) override {
    const auto found = objects.find(resource + "/" + name_space + "/" + name);
    if (found == objects.end()) co_return std::optional<TokenObject>();
    co_return std::optional<TokenObject>(found->second);
  }
};

class ServiceAccountTokens : public ::testing::Test {
 protected:
  ServiceAccountTokens() {
    objects_->objects["serviceaccounts/ns/sa"] = {.uid = "sa-uid"};
    objects_->objects["pods/ns/p"] = {.uid = "p-uid"};
    claims_ = {.issuer = "https://issuer",
               .subject = "system:serviceaccount:ns:sa",
               .id = "jti",
               .audiences = {"api"},
               .name_space = "ns",
               .service_account = {"sa", "sa-uid"}};
    claims_.issued_at = claims_.not_before = Now();
    claims_.expires = Now() + 600;
  }
  std::int64_t Now() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock_.Now().time_since_epoch()).count();
  }
  AuthenticationResult Ask(const std::string& token, std::optional<std::vector<std::string>> audiences = std::nullopt) {
    ServiceAccountAuthenticator authenticator(
        {.issuers = {"https://issuer"},
         .api_audiences = {"api"},
         .keys = std::make_shared<StaticPublicKeys>(std::vector{key_.public_key()}),
         .objects = objects_,
         .clock = &clock_});
    return RunNow(authenticator.AuthenticateToken(token, audiences.value_or(std::vector<std::string>{})));
  }
  AuthenticationResult Ask() { return Ask(key_.Sign(claims_.ToJSON())); }

  base::FakeClock clock_;
  SigningKey key_ = *SigningKey::Parse(Generate("ES256").private_pem);
  std::shared_ptr<FakeObjects> objects_ = std::make_shared<FakeObjects>();
  TokenClaims claims_;
};

TEST_F(ServiceAccountTokens, ReturnsTheServiceAccountUser) {
  claims_.pod = {"p", "p-uid"};
  claims_.node = {"n", "n-uid"};
  const auto result = Ask();
  ASSERT_TRUE(result.user) << result.Error();
  EXPECT_EQ(result.user->name, "system:serviceaccount:ns:sa");
  EXPECT_EQ(result.user->uid, "sa-uid");
  EXPECT_EQ(result.user->groups, (std::vector<std::string>{"system:serviceaccounts", "system:serviceaccounts:ns"}));
  ASSERT_EQ(result.user->extra.size(), 5u);
  EXPECT_EQ(result.user->extra[0].second, std::vector<std::string>{"JTI=jti"});
  EXPECT_EQ(result.audiences, std::vector<std::string>{"api"});
}

TEST_F(ServiceAccountTokens, ErrorsEqualUpstream) {
  const auto refused = [&](auto change) {
    const TokenClaims good = claims_;
    change();
    const auto result = Ask();
    claims_ = good;
    EXPECT_FALSE(result.user);
    return result.Error();
  };
  EXPECT_EQ(refused([&] { claims_.expires = Now() - 61; }), "service account token has expired");
  EXPECT_EQ(refused([&] { claims_.not_before = Now() + 61; }), "service account token is not valid yet");
  EXPECT_EQ(refused([&] { claims_.audiences = {"other"}; }),
            "token audiences [\"other\"] is invalid for the target audiences [\"api\"]");
  EXPECT_EQ(refused([&] { claims_.service_account.uid = "x"; }),
            "service account UID (sa-uid) does not match claim (x)");
  EXPECT_EQ(refused([&] { claims_.pod = {"gone", "u"}; }), "service account token has been invalidated");
  EXPECT_EQ(refused([&] { claims_.pod = {"p", "x"}; }),
            "pod UID (p-uid) does not match service account pod ref claim (x)");
  EXPECT_EQ(refused([&] { claims_.issuer = "https://other"; }), "");  // a token of another issuer
  objects_->objects["serviceaccounts/ns/sa"].deleted_at = clock_.Now() - std::chrono::seconds(61);
  EXPECT_EQ(refused([] {}), "service account ns/sa has been deleted");
  objects_->objects["serviceaccounts/ns/sa"].deleted_at = clock_.Now() - std::chrono::seconds(59);
  EXPECT_TRUE(Ask().user);
}

TEST_F(ServiceAccountTokens, DuplicateAndHugeClaimsAreRefused) {
  const std::string good = claims_.ToJSON();
  ASSERT_TRUE(Ask(key_.Sign(good)).user);
  const std::string duplicate = "go-jose/go-jose/json: duplicate key in token claims";
  // Whichever of the two a reader takes, the token is refused.
  EXPECT_EQ(Ask(key_.Sign(R"({"iss":"https://other",)" + good.substr(1))).Error(), duplicate);
  const std::string open = good.substr(0, good.size() - 1);
  EXPECT_EQ(Ask(key_.Sign(open + R"(,"sub":"system:serviceaccount:kube-system:admin"})")).Error(), duplicate);
  EXPECT_EQ(Ask(key_.Sign(R"({"\u0065xp":99999999999,)" + good.substr(1))).Error(), duplicate);
  // A megabyte of one claim and ten thousand levels of nesting, with the issuer's own signature: never a crash.
  Ask(key_.Sign(R"({"x":")" + std::string(1 << 20, 'x') + R"(",)" + good.substr(1)));
  Ask(key_.Sign(R"({"x":)" + std::string(10'000, '[') + std::string(10'000, ']') + "," + good.substr(1)));
}

TEST_F(ServiceAccountTokens, AudiencesRequestedByReviews) {
  claims_.audiences = {"vault", "api"};
  const std::string token = key_.Sign(claims_.ToJSON());
  EXPECT_EQ(Ask(token, std::vector<std::string>{"vault"}).audiences, std::vector<std::string>{"vault"});
  EXPECT_FALSE(Ask(token, std::vector<std::string>{"nobody"}).user);
}

TEST_F(ServiceAccountTokens, LegacyTokensAreComparedWithTheirSecret) {
  const std::string payload =
      R"({"iss":"kubernetes/serviceaccount","kubernetes.io/serviceaccount/namespace":"ns","kubernetes.io/serviceaccount/secret.name":"s",)"
      R"("kubernetes.io/serviceaccount/service-account.name":"sa","kubernetes.io/serviceaccount/service-account.uid":"sa-uid",)"
      R"("sub":"system:serviceaccount:ns:sa"})";
  const std::string token = key_.Sign(payload);
  EXPECT_EQ(Ask(token).Error(), "Token has been invalidated");
  objects_->objects["secrets/ns/s"] = {.uid = "s-uid", .token = "other"};
  EXPECT_EQ(Ask(token).Error(), "Token does not match server's copy");
  objects_->objects["secrets/ns/s"].token = token;
  EXPECT_TRUE(Ask(token).user);
  objects_->objects["secrets/ns/s"].invalid_since = "2026-01-01";
  EXPECT_FALSE(Ask(token).user);
}

}  // namespace
}  // namespace keelson::auth
