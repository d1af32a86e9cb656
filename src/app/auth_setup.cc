#include "app/auth_setup.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <vector>

#include "app/files.h"
#include "auth/external_jwt/plugin.h"
#include "base/duration.h"
#include "telemetry/log.h"

namespace keelson::app {
namespace {

using std::chrono::nanoseconds;
namespace external_jwt = auth::external_jwt;

constexpr std::chrono::milliseconds kKeySyncTimeout{60'000};
constexpr std::chrono::milliseconds kMetadataTimeout{10'000};
constexpr std::chrono::milliseconds kInterruptPoll{50};
constexpr std::chrono::seconds kExtendedExpiration{365 * 24 * 3600};
constexpr std::int64_t kTokenAgeSecondsMin = 600;

controlplane::TokenIssuer IssuerWith(const ServerRunOptions& options, std::shared_ptr<auth::TokenGenerator> generator) {
  const auto& accounts = options.authentication.service_accounts;
  return {.generator = std::move(generator),
          .issuer = accounts.issuers.front(),
          .api_audiences = options.authentication.api_audiences,
          .max_expiration = std::chrono::duration_cast<std::chrono::seconds>(accounts.max_expiration),
          .extend_expiration = accounts.extend_expiration,
          .max_extended_expiration = kExtendedExpiration};
}

Outcome<std::shared_ptr<auth::PublicKeysGetter>, Error> ReadTokenKeys(const Strings& files) {
  std::vector<auth::PublicKey> keys;
  for (const std::string& file : files) {
    KS_TRY(const std::string pem, ReadSmallFile(file));
    auto found = auth::ParsePublicKeys(pem);
    if (!found.ok()) return Error("error reading public key file " + file + ": " + found.error());
    keys.insert(keys.end(), found->begin(), found->end());
  }
  if (keys.empty()) return std::shared_ptr<auth::PublicKeysGetter>();
  return std::shared_ptr<auth::PublicKeysGetter>(std::make_shared<auth::StaticPublicKeys>(std::move(keys)));
}

Outcome<TokenSigning, Error> SignLocally(const ServerRunOptions& options) {
  const auto& accounts = options.authentication.service_accounts;
  TokenSigning made;
  KS_TRY(made.keys, ReadTokenKeys(accounts.key_files));
  const std::string& file = options.extra.service_account_signing_key_file;
  if (file.empty() || accounts.issuers.empty()) return made;
  KS_TRY(const std::string pem, ReadSmallFile(file));
  auto key = auth::SigningKey::Parse(pem);
  if (!key.ok())
    return Error("failed to parse service-account-issuer-key-file: error parsing private key file " + file + ": " +
                 key.error());
  made.issuer = std::make_shared<const controlplane::TokenIssuer>(
      IssuerWith(options, std::make_shared<auth::LocalTokenGenerator>(*std::move(key))));
  return made;
}

struct Contact {
  std::string problem;  // "" once the signer has answered
  std::int64_t max_token_expiration_seconds = 0;
};

Awaitable<Contact> ContactSigner(std::shared_ptr<external_jwt::SignerService> service,
                                 std::shared_ptr<external_jwt::KeyCache> keys) {
  const std::string unfilled = co_await keys->InitialFill();
  if (!unfilled.empty()) co_return Contact{.problem = "while initially filling key cache: " + unfilled};
  auto metadata = co_await service->Metadata(kMetadataTimeout);
  if (!metadata.ok()) co_return Contact{.problem = metadata.error().message};
  co_return Contact{.max_token_expiration_seconds = *metadata};
}

void WarnAboutLimits(const ExternalLimits& limits, bool extend_expiration) {
  constexpr nanoseconds kWarnOnly = std::chrono::seconds(3607);
  if (!extend_expiration) return;
  const std::string shown = base::FormatDuration(limits.max_expiration);
  if (limits.max_expiration < kWarnOnly) {
    log::Warning(
        "service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, token "
        "lifetime supported by external-jwt-signer must be longer than 3607 seconds (currently " +
        shown + ")");
  }
  if (limits.max_expiration < kExtendedExpiration) {
    log::Warning(
        "service-account-extend-token-expiration is true, tokens validity will be caped at the smaller of 31536000 "
        "seconds and maximum token lifetime supported by external-jwt-signer (" +
        shown + ")");
  }
}

Outcome<TokenSigning, Error> SignExternally(const ServerRunOptions& options, async::IOPool& io,
                                            telemetry::MetricsRegistry& registry,
                                            const std::function<bool()>& interrupted) {
  const auto& accounts = options.authentication.service_accounts;
  TokenSigning made;
  const auto metrics = std::make_shared<external_jwt::Metrics>(registry);
  const auto service = std::make_shared<external_jwt::SignerService>(
      options.extra.service_account_signing_endpoint,
      [metrics](std::string_view method, std::string_view code, nanoseconds took) {
        metrics->Called(method, code, took);
      });
  made.external_keys = std::make_shared<external_jwt::KeyCache>(
      external_jwt::KeyCache::Options{.service = service, .metrics = metrics, .timeout = kKeySyncTimeout});
  auto contacted = asio::co_spawn(io.Next(), ContactSigner(service, made.external_keys), asio::use_future);
  while (contacted.wait_for(kInterruptPoll) != std::future_status::ready) {
    if (interrupted()) service->Close();
  }
  const Contact contact = contacted.get();
  if (!contact.problem.empty()) return Error("while setting up external-jwt-signer: " + contact.problem);
  KS_TRY(const ExternalLimits limits,
         LimitByExternalSigner(accounts.max_expiration, contact.max_token_expiration_seconds));
  WarnAboutLimits(limits, accounts.extend_expiration);
  controlplane::TokenIssuer issuer =
      IssuerWith(options, std::make_shared<external_jwt::Plugin>(external_jwt::Plugin::Options{
                              .service = service, .keys = made.external_keys, .metrics = metrics}));
  issuer.max_expiration = std::chrono::duration_cast<std::chrono::seconds>(limits.max_expiration);
  issuer.max_extended_expiration = std::chrono::duration_cast<std::chrono::seconds>(limits.max_extended_expiration);
  made.issuer = std::make_shared<const controlplane::TokenIssuer>(std::move(issuer));
  made.keys = made.external_keys;
  made.external_signer = service;
  return made;
}

}  // namespace

Outcome<ExternalLimits, Error> LimitByExternalSigner(nanoseconds max_expiration, std::int64_t signer_max_seconds) {
  if (signer_max_seconds < kTokenAgeSecondsMin) {
    return Error("max token life supported by external-jwt-signer (" + std::to_string(signer_max_seconds) +
                 "s) is less than acceptable (min " + std::to_string(kTokenAgeSecondsMin) + "s)");
  }
  constexpr std::int64_t kSecondsMax = std::chrono::duration_cast<std::chrono::seconds>(nanoseconds::max()).count();
  const nanoseconds external = std::chrono::seconds(std::min(signer_max_seconds, kSecondsMax));
  if (max_expiration > external) {
    return Error(
        "service-account-max-token-expiration cannot be set longer than the token expiration supported by "
        "service-account-signing-endpoint: " +
        base::FormatDuration(max_expiration) + " > " + base::FormatDuration(external));
  }
  return ExternalLimits{.max_expiration = max_expiration.count() == 0 ? external : max_expiration,
                        .max_extended_expiration = std::min<nanoseconds>(external, kExtendedExpiration)};
}

Outcome<TokenSigning, Error> MakeTokenSigning(const ServerRunOptions& options, async::IOPool& io,
                                              telemetry::MetricsRegistry& metrics,
                                              const std::function<bool()>& interrupted) {
  const auto& issuers = options.authentication.service_accounts.issuers;
  const bool external = !options.extra.service_account_signing_endpoint.empty() && !issuers.empty();
  return external ? SignExternally(options, io, metrics, interrupted) : SignLocally(options);
}

}  // namespace keelson::app
