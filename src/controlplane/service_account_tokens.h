// Service account tokens in the API: serviceaccounts/token, and the documents by which others verify tokens.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "auth/bootstrap_token/authenticator.h"
#include "auth/service_account/authenticator.h"
#include "auth/service_account/public_keys.h"
#include "controlplane/resource_storage.h"
#include "server/generic_api_server.h"

namespace keelson::controlplane {

struct TokenIssuer {
  std::shared_ptr<auth::TokenGenerator> generator;
  std::string issuer;
  std::vector<std::string> api_audiences;
  std::chrono::seconds max_expiration{0};  // 0: no limit
  bool extend_expiration = true;
  std::chrono::seconds max_extended_expiration{365 * 24 * 3600};
};

// The objects tokens name, as the server has them. `storage` must outlive it.
std::shared_ptr<auth::TokenObjects> NewTokenObjects(ResourceStorage& storage);

// Bootstrap tokens' secrets, as the server has them. `storage` must outlive it.
std::shared_ptr<auth::BootstrapSecrets> NewBootstrapSecrets(ResourceStorage& storage);

// /.well-known/openid-configuration and /openid/v1/jwks. Installs nothing if the issuer is not an https URL, or no key
// is published.
void InstallTokenDiscovery(server::GenericAPIServer& server, const std::string& issuer, const std::string& jwks_uri,
                           std::shared_ptr<const auth::PublicKeysGetter> keys);

}  // namespace keelson::controlplane
