// Keys that verify service account tokens, and signers that make them. Each is either files read at the start or an
// external signer (auth/external_jwt).
// Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "auth/jose/keys.h"
#include "base/outcome.h"

namespace keelson::auth {

struct VerificationKeys {
  std::vector<PublicKey> keys;
  std::vector<PublicKey> published;  // those of `keys` that the issuer's discovery documents show
};

class PublicKeysGetter {
 public:
  virtual ~PublicKeysGetter() = default;
  virtual std::shared_ptr<const VerificationKeys> Current() const = 0;
  // A token names a key that Current() does not have: looks for newer keys. False: there are none.
  virtual Awaitable<bool> Sync() = 0;
  // How long a reader may keep the discovery documents.
  virtual std::chrono::seconds CacheAgeMax() const = 0;
};

class StaticPublicKeys final : public PublicKeysGetter {
 public:
  explicit StaticPublicKeys(std::vector<PublicKey> keys)
      : keys_(std::make_shared<const VerificationKeys>(VerificationKeys{.keys = keys, .published = keys})) {}
  std::shared_ptr<const VerificationKeys> Current() const override { return keys_; }
  Awaitable<bool> Sync() override;
  std::chrono::seconds CacheAgeMax() const override { return std::chrono::hours(1); }

 private:
  const std::shared_ptr<const VerificationKeys> keys_;
};

struct SigningError {
  std::string message;
};

class TokenGenerator {
 public:
  virtual ~TokenGenerator() = default;
  // The token of a payload (JSON text).
  virtual Awaitable<Outcome<std::string, SigningError>> GenerateToken(std::string payload) = 0;
};

class LocalTokenGenerator final : public TokenGenerator {
 public:
  explicit LocalTokenGenerator(SigningKey key) : key_(std::move(key)) {}
  Awaitable<Outcome<std::string, SigningError>> GenerateToken(std::string payload) override;

 private:
  const SigningKey key_;
};

}  // namespace keelson::auth
