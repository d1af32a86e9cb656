#include "app/auth_setup.h"

#include "app/files.h"
#include "base/random.h"

namespace keelson::app {

Outcome<std::shared_ptr<const controlplane::TokenIssuer>, Error> MakeTokenIssuer(const ServerRunOptions& options) {
  const auto& accounts = options.authentication.service_accounts;
  const std::string& file = options.extra.service_account_signing_key_file;
  if (file.empty() || accounts.issuers.empty()) return std::shared_ptr<const controlplane::TokenIssuer>();
  KS_TRY(const std::string pem, ReadSmallFile(file));
  auto key = auth::SigningKey::Parse(pem);
  if (!key.ok())
    return Error("failed to parse service-account-issuer-key-file: error parsing private key file " + file + ": " +
                 key.error());
  return std::make_shared<const controlplane::TokenIssuer>(controlplane::TokenIssuer{
      .key = *std::move(key),
      .issuer = accounts.issuers.front(),
      .api_audiences = options.authentication.api_audiences,
      .max_expiration = std::chrono::duration_cast<std::chrono::seconds>(accounts.max_expiration),
      .extend_expiration = accounts.extend_expiration});
}

}  // namespace keelson::app
