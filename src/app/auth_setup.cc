#include "app/auth_setup.h"

#include "app/files.h"
#include "base/random.h"

namespace keelson::app {

Outcome<std::vector<auth::PublicKey>, Error> ReadTokenKeys(const Strings& files) {
  std::vector<auth::PublicKey> keys;
  for (const std::string& file : files) {
    KS_TRY(const std::string pem, ReadSmallFile(file));
    auto found = auth::ParsePublicKeys(pem);
    if (!found.ok()) return Error("failed to read service account public key file \"" + file + "\": " + found.error());
    keys.insert(keys.end(), found->begin(), found->end());
  }
  return keys;
}

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

Outcome<std::shared_ptr<auth::Authenticator>, Error> MakeAuthenticator(
    const AuthenticationOptions& options, const std::string& loopback_token,
    const std::vector<auth::PublicKey>& token_keys, std::shared_ptr<auth::TokenObjects> token_objects,
    FollowedFiles& files, telemetry::MetricsRegistry& metrics) {
  std::vector<std::unique_ptr<auth::Authenticator>> members;
  auto loopback = std::make_unique<auth::StaticTokenAuthenticator>();
  loopback->Add(loopback_token,
                {.name = "system:apiserver",
                 .uid = base::Random::Real().UUID(),
                 .groups = {std::string(request::kAuthenticated), std::string(request::kSystemMasters)}});
  members.push_back(std::move(loopback));
  if (const auto& headers = options.request_header; !headers.client_ca_file.empty()) {
    KS_TRY(const std::string pem, ReadSmallFile(headers.client_ca_file));
    auto proxies = std::make_unique<auth::RequestHeaderAuthenticator>(
        auth::RequestHeaderOptions{.allowed_names = headers.allowed_names,
                                   .username_headers = headers.username_headers,
                                   .uid_headers = headers.uid_headers,
                                   .group_headers = headers.group_headers,
                                   .extra_header_prefixes = headers.extra_header_prefixes});
    if (!proxies->SetCA(pem))
      return Error("unable to load request header CA file \"" + headers.client_ca_file + "\": no certificates found");
    // The authenticators live as long as the server, and files are looked at no longer than that.
    files.Add(headers.client_ca_file, pem,
              [proxies = proxies.get()](const std::string& text) { return proxies->SetCA(text); });
    members.push_back(std::move(proxies));
  }
  if (!options.client_ca_file.empty()) {
    KS_TRY(const std::string pem, ReadSmallFile(options.client_ca_file));
    auto x509 = std::make_unique<auth::X509Authenticator>();
    if (!x509->SetCA(pem))
      return Error("unable to load client CA file \"" + options.client_ca_file + "\": no certificates found");
    x509->RegisterMetrics(metrics);
    files.Add(options.client_ca_file, pem, [x509 = x509.get()](const std::string& text) { return x509->SetCA(text); });
    members.push_back(std::move(x509));
  }
  if (!options.token_file.empty()) {
    KS_TRY(const std::string csv, ReadSmallFile(options.token_file));
    auto tokens = auth::StaticTokenAuthenticator::FromCSV(options.token_file, csv);
    if (!tokens.ok()) return Error(tokens.error());
    members.push_back(*std::move(tokens));
  }
  if (!token_keys.empty()) {
    members.push_back(std::make_unique<auth::ServiceAccountAuthenticator>(
        auth::ServiceAccountAuthenticator::Options{.issuers = options.service_accounts.issuers,
                                                   .api_audiences = options.api_audiences,
                                                   .keys = token_keys,
                                                   .objects = std::move(token_objects),
                                                   .lookup = options.service_accounts.lookup}));
  }
  return std::shared_ptr<auth::Authenticator>(
      std::make_shared<auth::UnionAuthenticator>(std::move(members), options.anonymous_allow));
}

std::shared_ptr<auth::Authorizer> MakeAuthorizer(const AuthorizationOptions& options,
                                                 const std::shared_ptr<auth::rbac::RBACAuthorizer>& rbac) {
  std::vector<std::unique_ptr<auth::Authorizer>> members;
  members.push_back(std::make_unique<auth::PrivilegedGroupAuthorizer>(std::string(request::kSystemMasters)));
  for (const auto& mode : options.modes) {
    if (mode == "AlwaysAllow") members.push_back(std::make_unique<auth::AlwaysAllowAuthorizer>());
    if (mode == "AlwaysDeny") members.push_back(std::make_unique<auth::AlwaysDenyAuthorizer>());
    if (mode == "RBAC") members.push_back(std::make_unique<auth::SharedAuthorizer>(rbac));
  }
  return std::make_shared<auth::UnionAuthorizer>(std::move(members));
}

}  // namespace keelson::app
