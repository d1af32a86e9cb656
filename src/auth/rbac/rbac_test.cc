#include <gtest/gtest.h>

#include "auth/rbac/index.h"
#include "auth/rbac/rules.h"

namespace keelson::auth::rbac {
namespace {

Value Texts(base::Arena& arena, std::initializer_list<std::string_view> texts) {
  Value list = Value::List(arena, texts.size());
  for (const std::string_view text : texts) list.Append(arena, text);
  return list;
}

Value Rule(base::Arena& arena, std::initializer_list<std::string_view> groups,
           std::initializer_list<std::string_view> resources, std::initializer_list<std::string_view> verbs,
           std::initializer_list<std::string_view> names = {}) {
  Value rule = Value::Map(arena);
  rule.Set(arena, "apiGroups", Texts(arena, groups));
  rule.Set(arena, "resources", Texts(arena, resources));
  rule.Set(arena, "verbs", Texts(arena, verbs));
  if (names.size() > 0) rule.Set(arena, "resourceNames", Texts(arena, names));
  return rule;
}

Value Role(base::Arena& arena, std::initializer_list<Value> rules) {
  Value role = Value::Map(arena);
  Value list = role.EnsureList(arena, "rules");
  for (const Value& rule : rules) list.Append(arena, rule);
  return role;
}

Value MakeBinding(base::Arena& arena, std::string_view kind, std::string_view role, std::string_view subject_kind,
                  std::string_view subject, std::string_view name_space = {}) {
  Value reference = Value::Map(arena);
  reference.Set(arena, "kind", kind);
  reference.Set(arena, "name", role);
  Value one = Value::Map(arena);
  one.Set(arena, "kind", subject_kind);
  one.Set(arena, "name", subject);
  if (!name_space.empty()) one.Set(arena, "namespace", name_space);
  Value binding = Value::Map(arena);
  binding.Set(arena, "roleRef", reference);
  binding.EnsureList(arena, "subjects").Append(arena, one);
  return binding;
}

Attributes Ask(std::string_view user, std::string_view verb, std::string_view resource,
               std::string_view name_space = {}, std::string_view name = {}, std::string_view group = {}) {
  Attributes attributes;
  attributes.user = request::User{.name = std::string(user), .groups = {"system:authenticated"}};
  attributes.verb = verb;
  attributes.resource_request = true;
  attributes.api_group = group;
  const auto slash = resource.find('/');
  attributes.resource = resource.substr(0, slash);
  if (slash != std::string_view::npos) attributes.subresource = resource.substr(slash + 1);
  attributes.name_space = name_space;
  attributes.name = name;
  return attributes;
}

TEST(Rules, Allows) {
  struct Case {
    const char* name;
    PolicyRule rule;
    Attributes attributes;
    bool want;
  };
  const std::vector<Case> cases = {
      {"exact", {{"get"}, {""}, {"pods"}, {}, {}}, Ask("u", "get", "pods"), true},
      {"other verb", {{"get"}, {""}, {"pods"}, {}, {}}, Ask("u", "list", "pods"), false},
      {"every verb", {{"*"}, {""}, {"pods"}, {}, {}}, Ask("u", "list", "pods"), true},
      {"other group", {{"get"}, {"apps"}, {"pods"}, {}, {}}, Ask("u", "get", "pods"), false},
      {"every group", {{"get"}, {"*"}, {"pods"}, {}, {}}, Ask("u", "get", "pods"), true},
      {"a resource does not cover its subresources",
       {{"get"}, {""}, {"pods"}, {}, {}},
       Ask("u", "get", "pods/log"),
       false},
      {"a subresource", {{"get"}, {""}, {"pods/log"}, {}, {}}, Ask("u", "get", "pods/log"), true},
      {"pods/* means nothing", {{"get"}, {""}, {"pods/*"}, {}, {}}, Ask("u", "get", "pods/log"), false},
      {"every resource's scale",
       {{"get"}, {"*"}, {"*/scale"}, {}, {}},
       Ask("u", "get", "deployments/scale", {}, {}, "apps"),
       true},
      {"scale is not scales",
       {{"get"}, {"*"}, {"*/scale"}, {}, {}},
       Ask("u", "get", "deployments/escale", {}, {}, "apps"),
       false},
      {"every resource covers subresources", {{"get"}, {""}, {"*"}, {}, {}}, Ask("u", "get", "pods/log"), true},
      {"named", {{"get"}, {""}, {"pods"}, {"a"}, {}}, Ask("u", "get", "pods", "ns", "a"), true},
      {"named, another asked", {{"get"}, {""}, {"pods"}, {"a"}, {}}, Ask("u", "get", "pods", "ns", "b"), false},
      {"named, none asked", {{"create"}, {""}, {"pods"}, {"a"}, {}}, Ask("u", "create", "pods", "ns"), false},
  };
  for (const Case& c : cases) EXPECT_EQ(RuleAllows(c.attributes, c.rule), c.want) << c.name;
}

TEST(Rules, AllowsPaths) {
  struct Case {
    const char* url;
    const char* path;
    bool want;
  };
  constexpr Case kCases[] = {
      {"*", "/anything", true},
      {"/healthz", "/healthz", true},
      {"/healthz", "/healthz/etcd", false},
      {"/healthz/*", "/healthz/etcd", true},
      {"/api*", "/apis", true},
      {"/healthz/**", "/healthz/x", true},
      {"/*/x", "/a/x", false},
  };
  for (const Case& c : kCases) {
    Attributes attributes;
    attributes.verb = "get";
    attributes.path = c.path;
    EXPECT_EQ(RuleAllows(attributes, {.verbs = {"get"}, .non_resource_urls = {c.url}}), c.want)
        << c.url << " " << c.path;
  }
}

TEST(Rules, UncoveredRulesIsBounded) {
  PolicyRule wide{.api_groups = {"", "apps"}};
  for (int i = 0; i < 2000; ++i) {
    wide.verbs.push_back("v" + std::to_string(i));
    wide.resources.push_back("r" + std::to_string(i));
    wide.resource_names.push_back("n" + std::to_string(i));
  }
  const PolicyRule pods{.verbs = {"get"}, .api_groups = {""}, .resources = {"pods"}};
  EXPECT_FALSE(UncoveredRules(std::vector<PolicyRule>{pods}, std::vector<PolicyRule>{wide}).has_value());
  const request::User user{.name = "bob"};
  EXPECT_NE(EscalationProblem(user, std::vector<PolicyRule>{pods}, std::vector<PolicyRule>{wide}, {}), "");
}

TEST(Rules, UncoveredRules) {
  const PolicyRule pods{.verbs = {"get", "list"}, .api_groups = {""}, .resources = {"pods", "pods/log"}};
  EXPECT_TRUE(UncoveredRules(std::vector<PolicyRule>{pods}, std::vector<PolicyRule>{pods})->empty());
  EXPECT_TRUE(UncoveredRules(FullAuthority(), std::vector<PolicyRule>{pods})->empty());
  // Verbs held in different rules count one by one.
  const std::vector<PolicyRule> parts = {{.verbs = {"get"}, .api_groups = {""}, .resources = {"*"}},
                                         {.verbs = {"list"}, .api_groups = {"*"}, .resources = {"pods"}}};
  const PolicyRules missing = *UncoveredRules(parts, std::vector<PolicyRule>{pods});
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(CompactString(missing[0]), R"({APIGroups:[""], Resources:["pods/log"], Verbs:["list"]})");
  // Names: an unnamed wish needs an unnamed right, a named one either.
  const PolicyRule named{.verbs = {"get"}, .api_groups = {""}, .resources = {"pods"}, .resource_names = {"a"}};
  const PolicyRule unnamed{.verbs = {"get"}, .api_groups = {""}, .resources = {"pods"}};
  EXPECT_FALSE(UncoveredRules(std::vector<PolicyRule>{named}, std::vector<PolicyRule>{unnamed})->empty());
  EXPECT_TRUE(UncoveredRules(std::vector<PolicyRule>{unnamed}, std::vector<PolicyRule>{named})->empty());
  // Subresources by wildcard, paths by prefix.
  const PolicyRule scale{.verbs = {"get"}, .api_groups = {"apps"}, .resources = {"deployments/scale"}};
  const PolicyRule scales{.verbs = {"get"}, .api_groups = {"apps"}, .resources = {"*/scale"}};
  EXPECT_TRUE(UncoveredRules(std::vector<PolicyRule>{scales}, std::vector<PolicyRule>{scale})->empty());
  const PolicyRule health{.verbs = {"get"}, .non_resource_urls = {"/healthz/etcd"}};
  const PolicyRule all_health{.verbs = {"*"}, .non_resource_urls = {"/healthz/*"}};
  EXPECT_TRUE(UncoveredRules(std::vector<PolicyRule>{all_health}, std::vector<PolicyRule>{health})->empty());
}

TEST(Rules, EscalationProblem) {
  request::User user{.name = "bob", .uid = {}, .groups = {"dev", "system:authenticated"}, .extra = {}};
  const std::vector<PolicyRule> wanted = {
      {.verbs = {"get", "list"}, .api_groups = {"apps"}, .resources = {"deployments"}},
      {.verbs = {"get"}, .non_resource_urls = {"/metrics"}}};
  const std::vector<std::string> errors = {"role x not found"};
  EXPECT_EQ(EscalationProblem(user, {}, wanted, errors),
            "user \"bob\" (groups=[\"dev\" \"system:authenticated\"]) is attempting to grant RBAC permissions not "
            "currently held:\n"
            "{APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"get\" \"list\"]}\n"
            "{NonResourceURLs:[\"/metrics\"], Verbs:[\"get\"]}; resolution errors: [role x not found]");
  EXPECT_EQ(EscalationProblem(user, FullAuthority(), wanted, {}), "");
}

class IndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    index_ = base::MakeRef<Index>()->With(std::vector<Index::Change>{
        {Kind::kClusterRole, "", "reader", Role(arena_, {Rule(arena_, {""}, {"pods"}, {"get", "list"})})},
        {Kind::kRole, "ns", "writer", Role(arena_, {Rule(arena_, {""}, {"pods"}, {"create"})})},
        {Kind::kClusterRoleBinding, "", "readers", MakeBinding(arena_, "ClusterRole", "reader", "Group", "team")},
        {Kind::kClusterRoleBinding, "", "lost", MakeBinding(arena_, "ClusterRole", "gone", "User", "eve")},
        {Kind::kRoleBinding, "ns", "bobs", MakeBinding(arena_, "ClusterRole", "reader", "User", "bob")},
        {Kind::kRoleBinding, "ns", "robots", MakeBinding(arena_, "Role", "writer", "ServiceAccount", "bot")},
    });
  }
  base::Arena arena_;
  base::Ref<const Index> index_;
};

TEST_F(IndexTest, Authorize) {
  Authorization answer = index_->Authorize(Ask("bob", "get", "pods", "ns"));
  EXPECT_EQ(answer.decision, Decision::kAllow);
  EXPECT_EQ(answer.reason, "RBAC: allowed by RoleBinding \"bobs/ns\" of ClusterRole \"reader\" to User \"bob\"");
  EXPECT_EQ(index_->Authorize(Ask("bob", "get", "pods", "other")).decision, Decision::kNoOpinion);
  EXPECT_EQ(index_->Authorize(Ask("bob", "get", "pods")).decision, Decision::kNoOpinion);

  Attributes member = Ask("ann", "list", "pods");
  member.user = request::User{.name = "ann", .groups = {"system:authenticated", "team"}};
  EXPECT_EQ(index_->Authorize(member).reason,
            "RBAC: allowed by ClusterRoleBinding \"readers\" of ClusterRole \"reader\" to Group \"team\"");

  answer = index_->Authorize(Ask("system:serviceaccount:ns:bot", "create", "pods", "ns"));
  EXPECT_EQ(answer.reason,
            "RBAC: allowed by RoleBinding \"robots/ns\" of Role \"writer\" to ServiceAccount \"bot/ns\"");
  EXPECT_EQ(index_->Authorize(Ask("system:serviceaccount:n:s:bot", "create", "pods", "ns")).decision,
            Decision::kNoOpinion);

  answer = index_->Authorize(Ask("eve", "get", "pods"));
  EXPECT_EQ(answer.decision, Decision::kNoOpinion);
  EXPECT_EQ(answer.reason, "RBAC: clusterrole.rbac.authorization.k8s.io \"gone\" not found");
  EXPECT_EQ(answer.error, "");
}

TEST_F(IndexTest, ASnapshotStaysWhenTheNextDiffers) {
  const auto next = index_->With(
      std::vector<Index::Change>{{Kind::kRoleBinding, "ns", "bobs", Value()},
                                 {Kind::kClusterRole, "", "gone", Role(arena_, {Rule(arena_, {"*"}, {"*"}, {"*"})})}});
  EXPECT_EQ(index_->Authorize(Ask("bob", "get", "pods", "ns")).decision, Decision::kAllow);
  EXPECT_EQ(next->Authorize(Ask("bob", "get", "pods", "ns")).decision, Decision::kNoOpinion);
  EXPECT_EQ(next->Authorize(Ask("eve", "delete", "nodes")).decision, Decision::kAllow);
  std::vector<std::string> errors;
  request::User bot;
  bot.name = "system:serviceaccount:ns:bot";
  EXPECT_EQ(next->RulesFor(bot, "ns", errors).size(), 1U);
  EXPECT_EQ(next->RulesFor(bot, "", errors).size(), 0U);
}

}  // namespace
}  // namespace keelson::auth::rbac
