// GET /console/api/namespaces: ["team-a","team-b"], the namespaces where the requester has a role binding. Users who
// may not list namespaces find theirs there; it shows only names in the requester's own bindings. Every signed-in user
// may call it, as with SelfSubjectRulesReview.
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
// Maximum number of rules copied for one answer. The user's rules at cluster scope are copied for each namespace, so that
// users with many of them get fewer namespaces.
constexpr std::size_t kRulesCopiedMax = 500'000;

// Those of `names` where the user has more rules than at cluster scope. Looks at the first kNamespacesLookedAtMax,
// fewer for kRulesCopiedMax.
std::vector<std::string> ReachableNamespaces(const auth::RuleResolver& rules, const request::User& user,
                                             const std::vector<std::string>& names);

void InstallNamespaces(server::PathMux& mux, std::shared_ptr<const auth::RuleResolver> rules, NamespaceNames names);

}  // namespace keelson::console
