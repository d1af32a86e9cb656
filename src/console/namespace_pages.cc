#include "console/namespace_pages.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "console/paths.h"
#include "endpoints/page.h"
#include "object/json_text.h"

namespace keelson::console {
namespace {

Awaitable<meta::Result<endpoints::Page>> Show(std::shared_ptr<const auth::RuleResolver> rules, NamespaceNames names,
                                              endpoints::ExchangePtr exchange) {
  KS_CO_TRY(const std::vector<std::string> all, co_await names());
  std::string out = "[";
  for (const std::string& name : ReachableNamespaces(*rules, *exchange->context.user, all)) {
    if (out.size() > 1) out += ',';
    object::AppendJSONString(out, name);
  }
  co_return endpoints::JSONPage(base::SharedBytes::FromString(out + "]\n"));
}

}  // namespace

std::vector<std::string> ReachableNamespaces(const auth::RuleResolver& rules, const request::User& user,
                                             const std::vector<std::string>& names) {
  const std::size_t everywhere = rules.RulesFor(user, "").resource_rules.size();
  std::vector<std::string> found;
  const std::size_t looked_at = std::min(kNamespacesLookedAtMax, kRulesCopiedMax / (everywhere + 1));
  for (const std::string& name : names | std::views::take(looked_at))
    if (rules.RulesFor(user, name).resource_rules.size() > everywhere) found.push_back(name);
  return found;
}

void InstallNamespaces(server::PathMux& mux, std::shared_ptr<const auth::RuleResolver> rules, NamespaceNames names) {
  mux.Unlisted(std::string(kNamespacesPath),
               endpoints::ServePageTask([rules = std::move(rules), names = std::move(names)](
                                            endpoints::ExchangePtr exchange) { return Show(rules, names, exchange); },
                                        {.method = "GET"}));
}

}  // namespace keelson::console
