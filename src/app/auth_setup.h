// Authorization and the issuer of service account tokens, made from the options. Called once at the start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/error.h"
#include "app/options.h"
#include "auth/authorizer.h"
#include "auth/jose/keys.h"
#include "auth/rbac/index.h"
#include "base/outcome.h"
#include "controlplane/server_chain.h"

namespace keelson::app {

// What signs service account tokens; null where no key is given.
Outcome<std::shared_ptr<const controlplane::TokenIssuer>, Error> MakeTokenIssuer(const ServerRunOptions& options);

}  // namespace keelson::app
