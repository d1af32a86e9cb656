#include <gtest/gtest.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "auth/jose/keys.h"
#include "base/strings.h"

namespace keelson::auth {
namespace {

struct Key {
  explicit Key(EVP_PKEY* key) : pkey(key) {}
  Key(const Key&) = delete;
  ~Key() { EVP_PKEY_free(pkey); }
  std::string PEM(bool with_private) const {
    BIO* bio = BIO_new(BIO_s_mem());
    with_private ? PEM_write_bio_PrivateKey(bio, pkey, nullptr, nullptr, 0, nullptr, nullptr)
                 : PEM_write_bio_PUBKEY(bio, pkey);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string pem(data, static_cast<std::size_t>(size));
    BIO_free(bio);
    return pem;
  }
  PublicKey Public() const { return ParsePublicKeys(PEM(false))->front(); }
  EVP_PKEY* pkey;
};

std::string SignRSA(EVP_PKEY* key, const EVP_MD* digest, bool pss, std::string_view text) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_PKEY_CTX* parameters = nullptr;
  EVP_DigestSignInit(context, &parameters, digest, nullptr, key);
  if (pss) {
    EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST);
  }
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  EVP_DigestSign(context, nullptr, &size, data, text.size());
  std::string signature(size, '\0');
  EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size, data, text.size());
  signature.resize(size);
  EVP_MD_CTX_free(context);
  return signature;
}

std::string HS256(std::string_view secret, std::string_view text) {
  std::string out(32, '\0');
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), reinterpret_cast<unsigned char*>(out.data()),
       &size);
  return out;
}

std::string Unsigned(std::string_view header, std::string_view payload) {
  return base::Base64URLEncode(header) + "." + base::Base64URLEncode(payload);
}

TEST(JOSE, VerifiesEveryAlgorithmThatFitsAnRSAKey) {
  const Key key(EVP_RSA_gen(2048));
  const std::vector<PublicKey> keys{key.Public()};
  struct Case {
    const char* algorithm;
    const EVP_MD* digest;
    bool pss;
  };
  const Case kCases[] = {{"RS256", EVP_sha256(), false}, {"RS384", EVP_sha384(), false}, {"RS512", EVP_sha512(), false},
                         {"PS256", EVP_sha256(), true},  {"PS384", EVP_sha384(), true},  {"PS512", EVP_sha512(), true}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.algorithm);
    const std::string text = Unsigned(R"({"alg":")" + std::string(c.algorithm) + R"("})", "{}");
    const std::string token = text + "." + base::Base64URLEncode(SignRSA(key.pkey, c.digest, c.pss, text));
    EXPECT_EQ(VerifyToken(*ParseToken(token), keys), "");
    for (const Case& other : kCases) {
      if (other.algorithm == c.algorithm) continue;
      EXPECT_FALSE(keys[0].Verify(other.algorithm, text, SignRSA(key.pkey, c.digest, c.pss, text))) << other.algorithm;
    }
  }
}

// Every row is a token that an attacker who knows the public key could make.
TEST(JOSE, RefusesAttacks) {
  const Key rsa(EVP_RSA_gen(2048)), other(EVP_RSA_gen(2048)), p256(EVP_EC_gen("P-256")), p384(EVP_EC_gen("P-384"));
  const std::vector<PublicKey> keys{rsa.Public(), p256.Public()};
  const auto signed_by = [](const Key& key, std::string_view header, std::string_view payload) {
    const std::string text = Unsigned(header, payload);
    return text + "." + base::Base64URLEncode(SignRSA(key.pkey, EVP_sha256(), false, text));
  };
  const std::string kid = keys[0].id();
  const std::string good = signed_by(rsa, R"({"alg":"RS256","kid":")" + kid + R"("})", "{}");
  ASSERT_EQ(VerifyToken(*ParseToken(good), keys), "");
  const auto hmac = [&](std::string_view secret) {
    const std::string text = Unsigned(R"({"alg":"HS256"})", "{}");
    return text + "." + base::Base64URLEncode(HS256(secret, text));
  };
  // A real signature of a P-256 or P-384 key, as JOSE writes it or as DER, below a header that names another curve.
  const auto curve = [](const Key& key, const EVP_MD* digest, std::size_t half, std::string_view header) {
    const std::string text = Unsigned(header, "{}");
    const std::string der = SignRSA(key.pkey, digest, false, text);
    const auto* data = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* const parts = d2i_ECDSA_SIG(nullptr, &data, static_cast<long>(der.size()));
    std::string raw(2 * half, '\0');
    BN_bn2binpad(ECDSA_SIG_get0_r(parts), reinterpret_cast<unsigned char*>(raw.data()), static_cast<int>(half));
    BN_bn2binpad(ECDSA_SIG_get0_s(parts), reinterpret_cast<unsigned char*>(raw.data() + half), static_cast<int>(half));
    ECDSA_SIG_free(parts);
    return std::pair(text + "." + base::Base64URLEncode(raw), text + "." + base::Base64URLEncode(der));
  };
  const std::string es256 = R"({"alg":"ES256"})";
  ASSERT_EQ(VerifyToken(*ParseToken(curve(p256, EVP_sha256(), 32, es256).first), keys), "");
  const std::vector<PublicKey> both_curves{p256.Public(), p384.Public()};
  ASSERT_EQ(VerifyToken(*ParseToken(curve(p384, EVP_sha384(), 48, R"({"alg":"ES384"})").first), both_curves), "");
  EXPECT_NE(VerifyToken(*ParseToken(curve(p384, EVP_sha256(), 48, es256).first), both_curves), "");
  std::string bit = good;
  bit[bit.size() - 10] = bit[bit.size() - 10] == 'A' ? 'B' : 'A';
  struct Case {
    const char* name;
    std::string token;
  };
  const Case kCases[] = {
      {"alg none", Unsigned(R"({"alg":"none"})", "{}") + "."},
      {"alg None", Unsigned(R"({"alg":"None"})", "{}") + "."},
      {"no alg", Unsigned("{}", "{}") + "."},
      {"empty signature", Unsigned(R"({"alg":"RS256"})", "{}") + "."},
      {"HMAC with the public PEM", hmac(rsa.PEM(false))},
      {"HMAC with the PEM without its last newline", hmac(base::Trim(rsa.PEM(false)))},
      {"a bit of the signature", bit},
      {"another key with a known kid", signed_by(other, R"({"alg":"RS256","kid":")" + kid + R"("})", "{}")},
      {"another key without a kid", signed_by(other, R"({"alg":"RS256"})", "{}")},
      {"a kid that is a path", signed_by(other, R"({"alg":"RS256","kid":"../../dev/null"})", "{}")},
      {"a key of its own", signed_by(other, R"({"alg":"RS256","jwk":{"kty":"RSA","n":"AQAB","e":"AQAB"}})", "{}")},
      {"a place to get its key from",
       signed_by(other, R"({"alg":"RS256","jku":"https://evil.example.com/jwks"})", "{}")},
      {"crit", signed_by(rsa, R"({"alg":"RS256","crit":["exp"],"exp":1})", "{}")},
      {"crit with b64", signed_by(rsa, R"({"alg":"RS256","crit":["b64"],"b64":false})", "{}")},
      {"RSA signature as ES256", signed_by(rsa, R"({"alg":"ES256"})", "{}")},
      {"ES384 with a P-256 key",
       Unsigned(R"({"alg":"ES384"})", "{}") + "." + base::Base64URLEncode(std::string(96, 1))},
      {"P-256 signature below ES384", curve(p256, EVP_sha384(), 32, R"({"alg":"ES384"})").first},
      {"P-256 signature with SHA-384 below ES256", curve(p256, EVP_sha384(), 32, es256).first},
      {"P-384 signature below ES256", curve(p384, EVP_sha256(), 48, es256).first},
      {"DER instead of r and s", curve(p256, EVP_sha256(), 32, es256).second},
      {"RS256 below PS256", signed_by(rsa, R"({"alg":"PS256"})", "{}")},
      {"SHA-256 below RS512", signed_by(rsa, R"({"alg":"RS512"})", "{}")},
      {"the kid of the other key", signed_by(rsa, R"({"alg":"RS256","kid":")" + keys[1].id() + R"("})", "{}")},
      {"another key with an empty kid", signed_by(other, R"({"alg":"RS256","kid":""})", "{}")},
      {"a kid that is a number", signed_by(other, R"({"alg":"RS256","kid":7})", "{}")},
      {"a kid that is a list", signed_by(other, R"({"alg":"RS256","kid":[")" + kid + R"("]})", "{}")},
      {"a known kid and a NUL", signed_by(other, R"({"alg":"RS256","kid":")" + kid + R"(\u0000"})", "{}")},
      {"two kids", signed_by(other, R"({"alg":"RS256","kid":"x","kid":")" + kid + R"("})", "{}")},
      {"a kid of a megabyte",
       signed_by(other, R"({"alg":"RS256","kid":")" + std::string(1 << 20, 'k') + R"("})", "{}")},
      {"certificates of its own",
       signed_by(other, R"({"alg":"RS256","x5c":["AAAA"],"x5u":"https://evil.example.com"})", "{}")},
      {"ES256 of zeros", Unsigned(R"({"alg":"ES256"})", "{}") + "." + base::Base64URLEncode(std::string(64, 0))},
      {"alg in lower case", signed_by(rsa, R"({"alg":"rs256"})", "{}")},
      {"EdDSA", Unsigned(R"({"alg":"EdDSA"})", "{}") + "." + base::Base64URLEncode(std::string(64, 1))},
      {"two algs", signed_by(rsa, R"({"alg":"none","alg":"RS256"})", "{}")},
      {"two algs, one escaped", signed_by(rsa, R"({"alg":"none","\u0061lg":"RS256"})", "{}")},
      {"alg is a number", signed_by(rsa, R"({"alg":256})", "{}")},
      {"header is a list", signed_by(rsa, R"(["RS256"])", "{}")},
      {"JSON serialization", R"({"payload":"e30","signatures":[]})"},
      {"padding", good + "="},
      {"a fourth part", good + ".e30"},
      {"huge", Unsigned(R"({"alg":"RS256"})", std::string(1 << 20, ' ')) + ".AAAA"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto token = ParseToken(c.token);
    if (token.ok()) {
      EXPECT_NE(VerifyToken(*token, keys), "");
    }
  }
}

TEST(JOSE, ReadsWhatItWritesAsAKeySet) {
  const Key rsa(EVP_RSA_gen(2048)), p256(EVP_EC_gen("P-256")), p384(EVP_EC_gen("P-384")), p521(EVP_EC_gen("P-521"));
  const std::vector<PublicKey> keys{rsa.Public(), p256.Public(), p384.Public(), p521.Public()};
  const auto set = ParseKeySet(KeySetDocument(keys));
  ASSERT_TRUE(set.ok()) << set.error();
  ASSERT_EQ(set->size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ((*set)[i].id, keys[i].id());
    EXPECT_EQ((*set)[i].key.id(), keys[i].id());  // the id is a hash of the key
    EXPECT_EQ((*set)[i].algorithm, keys[i].algorithm());
  }
}

TEST(JOSE, HostileKeySets) {
  struct Case {
    const char* name;
    const char* json;
    int want;  // number of keys, -1 for an error
  };
  constexpr Case kCases[] = {
      {"empty", R"({"keys":[]})", 0},
      {"no keys", R"({})", 0},
      {"no JSON", "x", -1},
      {"a list", "[]", -1},
      {"unknown types are left out", R"({"keys":[{"kty":"oct","k":"AAAA"},{"kty":"OKP","crv":"Ed25519","x":"AAAA"}]})",
       0},
      {"RSA of 64 bits", R"({"keys":[{"kty":"RSA","n":"wvvvvvvvvv8","e":"AQAB"}]})", -1},
      {"RSA without e", R"({"keys":[{"kty":"RSA","n":"AQAB"}]})", -1},
      {"a point not on its curve",
       R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"y_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})",
       -1},
      {"a good point",
       R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})",
       1},
      {"the same point on another curve",
       R"({"keys":[{"kty":"EC","crv":"P-384","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]})",
       -1},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto set = ParseKeySet(c.json);
    EXPECT_EQ(set.ok() ? static_cast<int>(set->size()) : -1, c.want);
  }
}

TEST(JOSE, DuplicateKeys) {
  EXPECT_FALSE(HasDuplicateKeys(R"({"a":1,"b":{"a":2}})"));
  EXPECT_TRUE(HasDuplicateKeys(R"({"a":1,"a":2})"));
  EXPECT_TRUE(HasDuplicateKeys(R"({"a":1,"\u0061":2})"));
  EXPECT_TRUE(HasDuplicateKeys(R"({"x":[{"a":1,"a":2}]})"));
}

}  // namespace
}  // namespace keelson::auth
