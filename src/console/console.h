// The console at /console: pages in the binary that talk to the API as the user who opened them.
// The pages themselves are public, as they hold nothing; every call that they make is authenticated and authorized as
// any other.
#pragma once

#include <memory>

#include "auth/authorizer.h"
#include "server/path_mux.h"

namespace keelson::console {

void InstallConsole(server::PathMux& mux);

// Lets everybody get the pages, so that somebody without a client certificate can paste a token; asks `next` about
// everything else.
std::shared_ptr<auth::Authorizer> AllowPages(std::shared_ptr<auth::Authorizer> next);

}  // namespace keelson::console
