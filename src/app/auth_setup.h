// Service account tokens as configured by the options: the signer and the verification keys, from files or from an
// external signer. Called once at the start.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/error.h"
#include "app/options.h"
#include "async/io_pool.h"
#include "auth/external_jwt/key_cache.h"
#include "auth/external_jwt/service.h"
#include "auth/service_account/public_keys.h"
#include "base/outcome.h"
#include "controlplane/server_chain.h"
#include "telemetry/metrics.h"

namespace keelson::app {

struct TokenSigning {
  std::shared_ptr<const controlplane::TokenIssuer> issuer;  // null: the server signs no tokens
  std::shared_ptr<auth::PublicKeysGetter> keys;             // null: it accepts none
  // Null without an external signer. The keys are to be refreshed, the service is to be closed at the end.
  std::shared_ptr<auth::external_jwt::KeyCache> external_keys;
  std::shared_ptr<auth::external_jwt::SignerService> external_signer;
};

// Waits up to a minute for an external signer, unless `interrupted` says otherwise. `io` and `metrics` must outlive the
// result.
Outcome<TokenSigning, Error> MakeTokenSigning(const ServerRunOptions& options, async::IOPool& io,
                                              telemetry::MetricsRegistry& metrics,
                                              const std::function<bool()>& interrupted);

// The limits of tokens that an external signer makes.
struct ExternalLimits {
  std::chrono::nanoseconds max_expiration{0}, max_extended_expiration{0};
};
// From --service-account-max-token-expiration (0: not set) and the signer's metadata, with upstream's errors.
Outcome<ExternalLimits, Error> LimitByExternalSigner(std::chrono::nanoseconds max_expiration,
                                                     std::int64_t signer_max_seconds);

}  // namespace keelson::app
