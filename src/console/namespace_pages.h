// GET /console/api/namespaces: ["team-a","team-b"], the namespaces where role bindings of their own give the requester
// something. Somebody who may not list namespaces learns there where to go; nobody learns a name through it that no
// binding of theirs has. Every user who is signed in may ask, as with SelfSubjectRulesReview.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/awaitable.h"
#include "auth/authorizer.h"
#include "meta/status.h"
#include "server/path_mux.h"

namespace keelson::console {

using NamespaceNames = std::function<Awaitable<meta::Result<std::vector<std::string>>>()>;

constexpr std::size_t kNamespacesLookedAtMax = 5'000;  // a few microseconds each, on an I/O thread

// Those of `names` where the user has more rules than at cluster scope. Looks at the first kNamespacesLookedAtMax.
std::vector<std::string> ReachableNamespaces(const auth::RuleResolver& rules, const request::User& user,
                                             const std::vector<std::string>& names);

void InstallNamespaces(server::PathMux& mux, std::shared_ptr<const auth::RuleResolver> rules, NamespaceNames names);

}  // namespace keelson::console
