// Who may come in and what they may do, made from the options: authenticators, authorizers and the keys of service
// account tokens. Called once at the start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/error.h"
#include "app/followed_files.h"
#include "app/options.h"
#include "auth/authenticator.h"
#include "auth/authorizer.h"
#include "auth/rbac/index.h"
#include "auth/service_account/authenticator.h"
#include "auth/service_account/keys.h"
#include "base/outcome.h"
#include "controlplane/server_chain.h"
#include "telemetry/metrics.h"

namespace keelson::app {

// Keys that verify service account tokens.
Outcome<std::vector<auth::PublicKey>, Error> ReadTokenKeys(const Strings& files);
// What signs service account tokens; null where no key is given.
Outcome<std::shared_ptr<const controlplane::TokenIssuer>, Error> MakeTokenIssuer(const ServerRunOptions& options);
// `files` gets the CA files to follow; it must not be looked at after the authenticator is gone. `metrics` must
// outlive the authenticator.
Outcome<std::shared_ptr<auth::Authenticator>, Error> MakeAuthenticator(
    const AuthenticationOptions& options, const std::string& loopback_token,
    const std::vector<auth::PublicKey>& token_keys, std::shared_ptr<auth::TokenObjects> token_objects,
    FollowedFiles& files, telemetry::MetricsRegistry& metrics);
// Node is accepted and has no opinion until it is built: a node may do what RBAC allows it.
std::shared_ptr<auth::Authorizer> MakeAuthorizer(const AuthorizationOptions& options,
                                                 const std::shared_ptr<auth::rbac::RBACAuthorizer>& rbac);

}  // namespace keelson::app
