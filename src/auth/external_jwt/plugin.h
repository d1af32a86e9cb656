// Makes service account tokens with an external signer: sends the claims, checks the header it chose, puts the token
// together. Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "auth/external_jwt/key_cache.h"
#include "auth/external_jwt/metrics.h"
#include "auth/external_jwt/service.h"
#include "auth/service_account/public_keys.h"

namespace keelson::auth::external_jwt {

class Plugin final : public TokenGenerator {
 public:
  struct Options {
    std::shared_ptr<SignerService> service;
    std::shared_ptr<KeyCache> keys;
    std::shared_ptr<Metrics> metrics;           // may be null
    std::chrono::milliseconds timeout{60'000};  // of a signature
  };
  explicit Plugin(Options options) : options_(std::move(options)) {}

  Awaitable<Outcome<std::string, SigningError>> GenerateToken(std::string payload) override;

 private:
  Awaitable<std::string> ValidateHeader(std::string header) const;

  const Options options_;
};

struct TokenHeader {
  std::string key_id;
};
// A token's header (base64url), or upstream's text of what is wrong with it: it may have alg, kid and typ only.
Outcome<TokenHeader, std::string> ReadHeader(std::string_view header);

}  // namespace keelson::auth::external_jwt
