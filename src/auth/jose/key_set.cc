#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <set>

#include "auth/jose/internal.h"
#include "auth/jose/keys.h"
#include "base/strings.h"
#include "object/json_reader.h"
#include "object/json_text.h"

namespace keelson::auth {
namespace {

using base::Deleter;
using NumberPtr = std::unique_ptr<BIGNUM, Deleter<BN_free>>;
using BuilderPtr = std::unique_ptr<OSSL_PARAM_BLD, Deleter<OSSL_PARAM_BLD_free>>;
using ParametersPtr = std::unique_ptr<OSSL_PARAM, Deleter<OSSL_PARAM_free>>;
using ContextPtr = std::unique_ptr<EVP_PKEY_CTX, Deleter<EVP_PKEY_CTX_free>>;

constexpr std::size_t kKeysMax = 1000;         // of a set
constexpr std::size_t kNumberBytesMax = 2048;  // of a key: RSA of 16,384 bits

std::string Unescaped(std::string_view key) {
  if (key.find('\\') == std::string_view::npos) return std::string(key);
  base::Arena arena;
  const auto value = object::ParseJSON(arena, "\"" + std::string(key) + "\"");
  return value ? std::string(value->as_string()) : std::string(key);
}

// Consumes one value.
bool Duplicates(object::JSONReader& reader, int depth) {
  if (depth > object::JSONReader::kDepthMax) return true;
  if (reader.EnterObject()) {
    std::set<std::string> keys;
    std::string_view key;
    while (reader.NextMember(key)) {
      if (!keys.insert(Unescaped(key)).second || Duplicates(reader, depth + 1)) return true;
    }
    return false;
  }
  if (reader.EnterList()) {
    while (reader.NextItem()) {
      if (Duplicates(reader, depth + 1)) return true;
    }
    return false;
  }
  reader.TakeValue();
  return false;
}

KeyPtr Build(const char* type, OSSL_PARAM_BLD* builder) {
  const ParametersPtr parameters(OSSL_PARAM_BLD_to_param(builder));
  const ContextPtr context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* raw = nullptr;
  if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &raw, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1) {
    return nullptr;
  }
  KeyPtr key(raw);
  // A point that is not on its curve is not a valid key.
  const ContextPtr check(EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  return check && EVP_PKEY_public_check(check.get()) == 1 ? std::move(key) : nullptr;
}

// A member's bytes; "" for text that is not base64url or too long.
std::string BytesOf(const Value& jwk, std::string_view name) {
  auto bytes = base::Base64URLDecode(jwk[name].as_string());
  return bytes && bytes->size() <= kNumberBytesMax ? *std::move(bytes) : std::string();
}

KeyPtr RSAKey(const Value& jwk) {
  const std::string n = BytesOf(jwk, "n"), e = BytesOf(jwk, "e");
  if (n.empty() || e.empty()) return nullptr;
  const auto number = [](const std::string& bytes) {
    return NumberPtr(
        BN_bin2bn(reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()), nullptr));
  };
  const NumberPtr modulus = number(n), exponent = number(e);
  const BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return nullptr;
  }
  return Build("RSA", builder.get());
}

KeyPtr ECKey(const Value& jwk) {
  const std::string_view curve = jwk["crv"].as_string();
  const char* const group = curve == "P-256"   ? "prime256v1"
                            : curve == "P-384" ? "secp384r1"
                            : curve == "P-521" ? "secp521r1"
                                               : nullptr;
  const std::size_t width = curve == "P-256" ? 32 : curve == "P-384" ? 48 : 66;
  const std::string x = BytesOf(jwk, "x"), y = BytesOf(jwk, "y");
  if (group == nullptr || x.size() != width || y.size() != width) return nullptr;
  const std::string point = "\x04" + x + y;  // uncompressed
  const BuilderPtr builder(OSSL_PARAM_BLD_new());
  if (OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, group, 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) != 1) {
    return nullptr;
  }
  return Build("EC", builder.get());
}

}  // namespace

bool HasDuplicateKeys(std::string_view json) {
  object::JSONReader reader(json);
  return Duplicates(reader, 0);
}

Outcome<std::vector<SetKey>, std::string> ParseKeySet(std::string_view json) {
  base::Arena arena;
  const auto document = object::ParseJSON(arena, json);
  if (!document || !document->is_map()) return std::string("the key set is no JSON object");
  std::vector<SetKey> keys;
  for (const Value jwk : (*document)["keys"].items()) {
    if (keys.size() >= kKeysMax) break;
    const std::string_view type = jwk["kty"].as_string();
    if (type != "RSA" && type != "EC") continue;
    auto described = DescribeKey(type == "RSA" ? RSAKey(jwk) : ECKey(jwk));
    ERR_clear_error();
    if (!described) return "the key set has a malformed key of type " + std::string(type);
    keys.push_back({.id = std::string(jwk["kid"].as_string()),
                    .algorithm = std::string(jwk["alg"].as_string()),
                    .key = PublicKey(std::move(described))});
  }
  return keys;
}

}  // namespace keelson::auth
