// Keys that sign and verify JSON web tokens (JWS compact form). Signed is with the key's own algorithm: RSA RS256;
// P-256 ES256, P-384 ES384, P-521 ES512. Verified is what fits the key: RS and PS 256 to 512, ES by curve; never
// "none", never HMAC. Thread safety: const members from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"

namespace keelson::auth {

class PublicKey {
 public:
  // A key in PKIX DER with an externally chosen id. An error for an unsupported key type or curve.
  static Outcome<PublicKey, std::string> FromPKIX(std::string_view der, std::string id);

  const std::string& id() const;         // base64url of SHA-256 over the key's PKIX DER, unless it was given one
  const std::string& algorithm() const;  // RS256
  // False for an algorithm that does not fit the key.
  bool Verify(std::string_view algorithm, std::string_view signed_text, std::string_view signature) const;
  std::string JWK() const;  // a JSON object, members in the order go-jose writes them

  struct Impl;
  explicit PublicKey(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  friend class SigningKey;
  std::shared_ptr<const Impl> impl_;
};

// Every key of a PEM text: private keys (their public part), public keys, certificates. An error where there is none of
// a known type.
Outcome<std::vector<PublicKey>, std::string> ParsePublicKeys(std::string_view pem);

class SigningKey {
 public:
  static Outcome<SigningKey, std::string> Parse(std::string_view pem);  // an RSA or EC private key
  const PublicKey& public_key() const { return public_; }
  // The token of a payload (JSON text).
  std::string Sign(std::string_view payload) const;

 private:
  explicit SigningKey(PublicKey key) : public_(std::move(key)) {}
  PublicKey public_;
};

// A parsed token; nothing of it is verified yet. An error if the text is not a JWS in compact form.
struct Token {
  std::string algorithm, key_id;
  bool critical = false;  // the header demands extensions ("crit"); none is known here
  std::string payload;    // JSON text
  std::string signed_text;
  std::string signature;
};
Outcome<Token, std::string> ParseToken(std::string_view text);

// "" when one of the keys (of the token's key id, where it has one) verifies it.
std::string VerifyToken(const Token& token, const std::vector<PublicKey>& keys);

// Whether `json` has an object, at any depth, in which a key occurs twice: readers would disagree on its meaning.
bool HasDuplicateKeys(std::string_view json);

// A key of a JSON web key set with its id there ("" where it has none); keys of other uses or unknown types are left
// out.
struct SetKey {
  std::string id;
  std::string algorithm;  // "" where the set does not say
  PublicKey key;
};
// An error if `json` is not a key set, or a key of a known type in it is malformed.
Outcome<std::vector<SetKey>, std::string> ParseKeySet(std::string_view json);

// {"keys":[...]}
std::string KeySetDocument(const std::vector<PublicKey>& keys);
// /.well-known/openid-configuration
std::string DiscoveryDocument(std::string_view issuer, std::string_view jwks_uri, const std::vector<PublicKey>& keys);

}  // namespace keelson::auth
