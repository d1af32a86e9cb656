#include "console/namespace_pages.h"

#include <gtest/gtest.h>

#include "console/console.h"

namespace keelson::console {
namespace {

class Rules final : public auth::RuleResolver {
 public:
  auth::ResolvedRules RulesFor(const request::User& user, std::string_view name_space) const override {
    auth::ResolvedRules found;
    if (user.name == "reader") found.resource_rules.push_back({.verbs = {"get"}, .resources = {"nodes"}});
    if (name_space == "team") found.resource_rules.push_back({.verbs = {"get"}, .resources = {"pods"}});
    return found;
  }
};

TEST(NamespacePagesTest, BindingsOfTheNamespaceCount) {
  const std::vector<std::string> all = {"closed", "team", "zoo"};
  for (const std::string name : {"guest", "reader"})
    EXPECT_EQ(ReachableNamespaces(Rules(), {.name = name}, all), (std::vector<std::string>{"team"}));
  EXPECT_TRUE(ReachableNamespaces(Rules(), {.name = "guest"}, {}).empty());
}

class ManyRules final : public auth::RuleResolver {
 public:
  auth::ResolvedRules RulesFor(const request::User&, std::string_view) const override {
    auth::ResolvedRules found;
    found.resource_rules.resize(10'000);
    copied += found.resource_rules.size();
    return found;
  }
  mutable std::size_t copied = 0;
};

// A user with 250 bindings of a role with 100 rules took 12 s on an I/O thread with 1,000 namespaces.
TEST(NamespacePagesTest, UsersWithManyRulesSeeFewerNamespaces) {
  const ManyRules rules;
  EXPECT_TRUE(ReachableNamespaces(rules, {.name = "a"}, std::vector<std::string>(kNamespacesLookedAtMax, "n")).empty());
  EXPECT_LE(rules.copied, kRulesCopiedMax + 10'000);
}

TEST(NamespacePagesTest, EverySignedInUserIsAllowed) {
  const auto pages = AllowPages(std::make_shared<auth::AlwaysDenyAuthorizer>());
  const auto allows = [&](std::string group, std::string verb, std::string path) {
    const auth::Attributes attributes{
        .user = request::User{.name = "a", .groups = {std::move(group)}}, .verb = verb, .path = path};
    return pages->TryAuthorize(attributes)->decision == auth::Decision::kAllow;
  };
  EXPECT_TRUE(allows("system:authenticated", "get", "/console/api/namespaces"));
  EXPECT_FALSE(allows("system:authenticated", "post", "/console/api/namespaces"));
  EXPECT_FALSE(allows("system:authenticated", "get", "/console/api/namespaces/x"));
  EXPECT_FALSE(allows("system:unauthenticated", "get", "/console/api/namespaces"));
  EXPECT_TRUE(allows("system:authenticated", "post", "/console/api/yaml"));
  EXPECT_FALSE(allows("system:authenticated", "get", "/console/api/yaml"));
  EXPECT_FALSE(allows("system:unauthenticated", "post", "/console/api/yaml"));
  EXPECT_FALSE(allows("system:authenticated", "get", "/console/api/store"));
  EXPECT_TRUE(allows("system:unauthenticated", "get", "/console/main.js"));
}

}  // namespace
}  // namespace keelson::console
