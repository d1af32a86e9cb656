// The console at /console: pages in the binary that talk to the API as the signed-in user.
// The pages themselves are public, as they hold nothing; every call that they make is authenticated and authorized as
// any other. So is the exchange of a one-time link (console/sign_in.h), which requires a secret.
#pragma once

#include <memory>

#include "audit/tail.h"
#include "auth/authorizer.h"
#include "console/namespace_pages.h"
#include "console/sign_in.h"
#include "console/store_pages.h"
#include "server/path_mux.h"

namespace keelson::console {

// Parts that are null are not offered.
struct ConsoleParts {
  std::shared_ptr<SignIn> sign_in;
  std::shared_ptr<audit::Tail> tail;
  std::shared_ptr<StoreCare> store;
  std::shared_ptr<const auth::RuleResolver> rules;
  NamespaceNames namespaces;  // all there are
};
void InstallConsole(server::PathMux& mux, ConsoleParts parts);

// Allows everyone to get the pages and to exchange a link, so that a user without a client certificate can sign in, and
// every signed-in user to list their namespaces and to convert YAML; delegates everything else to `next`.
std::shared_ptr<auth::Authorizer> AllowPages(std::shared_ptr<auth::Authorizer> next);

}  // namespace keelson::console
