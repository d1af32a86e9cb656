// Keys that sign and verify service account tokens (JWS compact form). Algorithm by key: RSA RS256; P-256 ES256, P-384
// ES384, P-521 ES512. Thread safety: const members from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/outcome.h"

namespace keelson::auth {

class PublicKey {
 public:
  const std::string& id() const;         // base64url of SHA-256 over the key's PKIX DER
  const std::string& algorithm() const;  // RS256
  bool Verify(std::string_view signed_text, std::string_view signature) const;
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

// A token taken apart; nothing of it is believed yet. An error for what is no JWS in compact form.
struct Token {
  std::string algorithm, key_id;
  std::string payload;  // JSON text
  std::string_view signed_text;
  std::string signature;
};
Outcome<Token, std::string> ParseToken(std::string_view text);

// "" when one of the keys (of the token's key id, where it has one) verifies it.
std::string VerifyToken(const Token& token, const std::vector<PublicKey>& keys);

// {"keys":[...]}
std::string KeySetDocument(const std::vector<PublicKey>& keys);
// /.well-known/openid-configuration
std::string DiscoveryDocument(std::string_view issuer, std::string_view jwks_uri, const std::vector<PublicKey>& keys);

}  // namespace keelson::auth
