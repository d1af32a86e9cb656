#include "auth/jose/keys.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include <algorithm>
#include <set>

#include "auth/jose/internal.h"
#include "base/deleter.h"
#include "base/pem.h"
#include "base/strings.h"
#include "object/json_text.h"

namespace keelson::auth {
namespace {

constexpr std::size_t kTokenMax = 64 * 1024;

using base::Deleter;
using X509Ptr = std::unique_ptr<X509, Deleter<X509_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using SignaturePtr = std::unique_ptr<ECDSA_SIG, Deleter<ECDSA_SIG_free>>;
using NumberPtr = std::unique_ptr<BIGNUM, Deleter<BN_free>>;

struct Algorithm {
  std::string_view name, curve, group;  // as JOSE and as OpenSSL name the curve
  int coordinate = 0;                   // bytes
  const EVP_MD* (*digest)() = nullptr;
};
constexpr Algorithm kRSA = {"RS256", "", "", 0, EVP_sha256};
constexpr Algorithm kCurves[] = {
    {"ES256", "P-256", "prime256v1", 32, EVP_sha256},
    {"ES384", "P-384", "secp384r1", 48, EVP_sha384},
    {"ES512", "P-521", "secp521r1", 66, EVP_sha512},
};

const Algorithm* AlgorithmOf(const EVP_PKEY* key) {
  if (EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA) return &kRSA;
  char group[64] = {};
  std::size_t size = 0;
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC || EVP_PKEY_get_group_name(key, group, sizeof(group), &size) != 1)
    return nullptr;
  const auto found = std::ranges::find(kCurves, std::string_view(group, size), &Algorithm::group);
  return found == std::end(kCurves) ? nullptr : found;
}

const unsigned char* Bytes(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

// A public number of the key, in big-endian bytes: at least `width` of them.
std::string Number(const EVP_PKEY* key, const char* name, int width) {
  BIGNUM* raw = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &raw) != 1) return {};
  const NumberPtr number(raw);
  std::string bytes(static_cast<std::size_t>(std::max(width, BN_num_bytes(number.get()))), '\0');
  BN_bn2binpad(number.get(), Bytes(bytes), static_cast<int>(bytes.size()));
  return bytes;
}

}  // namespace

struct PublicKey::Impl {
  KeyPtr key;
  const Algorithm* algorithm;
  std::string id, name;
};

namespace {

// base64url of SHA-256 over the key's PKIX DER; "" when it has none.
std::string IDOf(const EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) return {};
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<std::size_t>(size), digest);
  OPENSSL_free(der);
  return base::Base64URLEncode({reinterpret_cast<char*>(digest), sizeof(digest)});
}

}  // namespace

std::shared_ptr<const PublicKey::Impl> DescribeKey(KeyPtr key, std::string id) {
  constexpr int kRSABitsMin = 1024;
  const Algorithm* algorithm = key ? AlgorithmOf(key.get()) : nullptr;
  if (algorithm == nullptr) return nullptr;
  if (algorithm->coordinate == 0 && EVP_PKEY_get_bits(key.get()) < kRSABitsMin) return nullptr;
  if (id.empty()) id = IDOf(key.get());
  if (id.empty()) return nullptr;
  auto impl = std::make_shared<PublicKey::Impl>();
  impl->key = std::move(key);
  impl->algorithm = algorithm;
  impl->id = std::move(id);
  impl->name = algorithm->name;
  return impl;
}

namespace {

KeyPtr ParseBlock(const base::PEMBlock& block) {
  const auto* at = Bytes(std::string_view(block.bytes));
  const long size = static_cast<long>(block.bytes.size());
  if (block.type == "PUBLIC KEY") return KeyPtr(d2i_PUBKEY(nullptr, &at, size));
  if (block.type == "RSA PUBLIC KEY") return KeyPtr(d2i_PublicKey(EVP_PKEY_RSA, nullptr, &at, size));
  if (block.type == "CERTIFICATE") {
    const X509Ptr certificate(d2i_X509(nullptr, &at, size));
    return certificate ? KeyPtr(X509_get_pubkey(certificate.get())) : nullptr;
  }
  if (block.type == "PRIVATE KEY" || block.type == "RSA PRIVATE KEY" || block.type == "EC PRIVATE KEY")
    return KeyPtr(d2i_AutoPrivateKey(nullptr, &at, size));
  return nullptr;
}

// Every usable key of a PEM text, or only private ones.
std::vector<std::shared_ptr<const PublicKey::Impl>> ParsePEM(std::string_view pem, bool private_only) {
  std::vector<std::shared_ptr<const PublicKey::Impl>> keys;
  for (base::PEMBlock& block : base::DecodeAllPEM(pem)) {
    KeyPtr key = !private_only || block.type.ends_with("PRIVATE KEY") ? ParseBlock(block) : nullptr;
    OPENSSL_cleanse(block.bytes.data(), block.bytes.size());
    if (!key) continue;
    if (auto described = DescribeKey(std::move(key))) keys.push_back(std::move(described));
  }
  ERR_clear_error();
  return keys;
}

void AppendMember(std::string& out, std::string_view key, std::string_view value) {
  out += out.size() == 1 ? "" : ",";
  object::AppendJSONString(out, key);
  out += ':';
  object::AppendJSONString(out, value);
}

}  // namespace

Outcome<PublicKey, std::string> PublicKey::FromPKIX(std::string_view der, std::string id) {
  const auto* at = Bytes(der);
  KeyPtr key(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
  const bool whole = key && at == Bytes(der) + der.size();
  ERR_clear_error();
  if (!key) return std::string("x509: failed to parse public key");
  if (!whole) return std::string("x509: trailing data after ASN.1 of public-key");
  auto described = DescribeKey(std::move(key), std::move(id));
  if (!described) return std::string("x509: unknown public key algorithm");
  return PublicKey(std::move(described));
}

const std::string& PublicKey::id() const { return impl_->id; }
const std::string& PublicKey::algorithm() const { return impl_->name; }

namespace {

// The digest of an algorithm name (RS256: SHA-256); null for one that is unknown here.
const EVP_MD* DigestOf(std::string_view algorithm) {
  const std::string_view size = algorithm.size() == 5 ? algorithm.substr(2) : std::string_view();
  return size == "256" ? EVP_sha256() : size == "384" ? EVP_sha384() : size == "512" ? EVP_sha512() : nullptr;
}

// A JWS signature of two numbers as OpenSSL wants it; "" for one of the wrong size.
std::string SignatureDER(std::string_view signature, int width) {
  if (signature.size() != static_cast<std::size_t>(2 * width)) return {};
  const SignaturePtr pair(ECDSA_SIG_new());
  ECDSA_SIG_set0(pair.get(), BN_bin2bn(Bytes(signature), width, nullptr),
                 BN_bin2bn(Bytes(signature) + width, width, nullptr));
  unsigned char* encoded = nullptr;
  const int size = i2d_ECDSA_SIG(pair.get(), &encoded);
  if (size <= 0) return {};
  std::string der(reinterpret_cast<char*>(encoded), static_cast<std::size_t>(size));
  OPENSSL_free(encoded);
  return der;
}

}  // namespace

bool PublicKey::Verify(std::string_view algorithm, std::string_view signed_text, std::string_view signature) const {
  const EVP_MD* const digest = DigestOf(algorithm);
  if (digest == nullptr) return false;
  const int width = impl_->algorithm->coordinate;
  const bool pss = algorithm.starts_with("PS");
  std::string encoded(signature);
  if (width > 0) {
    if (algorithm != impl_->algorithm->name) return false;
    encoded = SignatureDER(signature, width);
    if (encoded.empty()) return false;
  } else if (!pss && !algorithm.starts_with("RS")) {
    return false;
  }
  const DigestPtr context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* parameters = nullptr;  // owned by `context`
  const bool good =
      EVP_DigestVerifyInit(context.get(), &parameters, digest, nullptr, impl_->key.get()) == 1 &&
      (!pss || (EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1 &&
                EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_AUTO) == 1)) &&
      EVP_DigestVerify(context.get(), Bytes(encoded), encoded.size(), Bytes(signed_text), signed_text.size()) == 1;
  ERR_clear_error();
  return good;
}

std::string PublicKey::JWK() const {
  std::string out = "{";
  const EVP_PKEY* key = impl_->key.get();
  const Algorithm& algorithm = *impl_->algorithm;
  AppendMember(out, "use", "sig");
  AppendMember(out, "kty", algorithm.coordinate > 0 ? "EC" : "RSA");
  AppendMember(out, "kid", impl_->id);
  if (algorithm.coordinate > 0) AppendMember(out, "crv", algorithm.curve);
  AppendMember(out, "alg", algorithm.name);
  if (algorithm.coordinate > 0) {
    AppendMember(out, "x", base::Base64URLEncode(Number(key, OSSL_PKEY_PARAM_EC_PUB_X, algorithm.coordinate)));
    AppendMember(out, "y", base::Base64URLEncode(Number(key, OSSL_PKEY_PARAM_EC_PUB_Y, algorithm.coordinate)));
  } else {
    AppendMember(out, "n", base::Base64URLEncode(Number(key, OSSL_PKEY_PARAM_RSA_N, 0)));
    AppendMember(out, "e", base::Base64URLEncode(Number(key, OSSL_PKEY_PARAM_RSA_E, 0)));
  }
  return out + "}";
}

Outcome<std::vector<PublicKey>, std::string> ParsePublicKeys(std::string_view pem) {
  std::vector<PublicKey> keys;
  for (auto& impl : ParsePEM(pem, false)) keys.emplace_back(std::move(impl));
  if (keys.empty()) return std::string("data does not contain any valid RSA or ECDSA public keys");
  return keys;
}

Outcome<SigningKey, std::string> SigningKey::Parse(std::string_view pem) {
  auto keys = ParsePEM(pem, true);
  if (keys.empty()) return std::string("data does not contain a valid RSA or ECDSA private key");
  return SigningKey(PublicKey(std::move(keys.front())));
}

std::string SigningKey::Sign(std::string_view payload) const {
  const PublicKey::Impl& impl = *public_.impl_;
  std::string header = "{";
  AppendMember(header, "alg", impl.name);
  AppendMember(header, "kid", impl.id);
  header += "}";
  std::string token = base::Base64URLEncode(header) + "." + base::Base64URLEncode(payload);
  const DigestPtr context(EVP_MD_CTX_new());
  std::size_t size = 0;
  std::string signature;
  if (EVP_DigestSignInit(context.get(), nullptr, impl.algorithm->digest(), nullptr, impl.key.get()) == 1 &&
      EVP_DigestSign(context.get(), nullptr, &size, Bytes(token), token.size()) == 1) {
    signature.resize(size);
    if (EVP_DigestSign(context.get(), Bytes(signature), &size, Bytes(token), token.size()) != 1) size = 0;
    signature.resize(size);
  }
  ERR_clear_error();
  if (const int width = impl.algorithm->coordinate; width > 0 && !signature.empty()) {
    const unsigned char* at = Bytes(std::string_view(signature));
    const SignaturePtr pair(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(signature.size())));
    std::string raw(static_cast<std::size_t>(2 * width), '\0');
    BN_bn2binpad(ECDSA_SIG_get0_r(pair.get()), Bytes(raw), width);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair.get()), Bytes(raw) + width, width);
    signature = std::move(raw);
  }
  return token + "." + base::Base64URLEncode(signature);
}

Outcome<Token, std::string> ParseToken(std::string_view text) {
  const std::string malformed = "go-jose/go-jose: compact JWS format must have three parts";
  if (text.size() > kTokenMax) return malformed;
  const auto parts = base::Split(text, '.');
  if (parts.size() != 3) return malformed;
  const auto header = base::Base64URLDecode(parts[0]);
  auto payload = base::Base64URLDecode(parts[1]);
  auto signature = base::Base64URLDecode(parts[2]);
  if (!header || !payload || !signature) return std::string("illegal base64 data");
  base::Arena arena;
  const auto fields = object::ParseJSON(arena, *header);
  if (!fields || !fields->is_map() || HasDuplicateKeys(*header)) return std::string("invalid JWS header");
  return Token{.algorithm = std::string((*fields)["alg"].as_string()),
               .key_id = std::string((*fields)["kid"].as_string()),
               .critical = !(*fields)["crit"].is_null(),
               .payload = *std::move(payload),
               .signed_text = std::string(text.substr(0, parts[0].size() + 1 + parts[1].size())),
               .signature = *std::move(signature)};
}

std::string VerifyToken(const Token& token, const std::vector<PublicKey>& keys) {
  bool tried = false;
  for (const PublicKey& key : keys) {
    if (!token.key_id.empty() && key.id() != token.key_id) continue;
    tried = true;
    if (!token.critical && key.Verify(token.algorithm, token.signed_text, token.signature)) return {};
  }
  return tried ? "go-jose/go-jose: error in cryptographic primitive" : "invalid signature, no keys found";
}

std::string KeySetDocument(const std::vector<PublicKey>& keys) {
  std::string out = "{\"keys\":[";
  for (const PublicKey& key : keys) {
    if (!out.ends_with('[')) out += ',';
    out += key.JWK();
  }
  return out + "]}";
}

std::string DiscoveryDocument(std::string_view issuer, std::string_view jwks_uri, const std::vector<PublicKey>& keys) {
  std::set<std::string> algorithms;
  for (const PublicKey& key : keys) algorithms.insert(key.algorithm());
  std::string out = "{";
  AppendMember(out, "issuer", issuer);
  AppendMember(out, "jwks_uri", jwks_uri);
  out +=
      R"(,"response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":[)";
  for (const std::string& name : algorithms) {
    if (!out.ends_with('[')) out += ',';
    object::AppendJSONString(out, name);
  }
  return out + "]}";
}

}  // namespace keelson::auth
