#include "admission/match/criteria.h"

#include <gtest/gtest.h>

#include "admission/testing/fakes.h"
#include "object/json_text.h"

namespace keelson::admission {
namespace {

Value Parse(base::Arena& arena, std::string_view json) { return *object::ParseJSON(arena, json); }

TEST(ResourceRule, Matches) {
  struct Case {
    const char* name;
    const char* rule;
    Operation operation;
    meta::GroupVersionResource resource;
    const char* subresource;
    const char* name_space;
    bool want;
  };
  const Case kCases[] = {
      {"exact",
       R"({"operations":["CREATE"],"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"]})",
       Operation::kCreate,
       {"apps", "v1", "deployments"},
       "",
       "ns",
       true},
      {"other operation",
       R"({"operations":["CREATE"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"]})",
       Operation::kDelete,
       {"apps", "v1", "deployments"},
       "",
       "ns",
       false},
      {"all operations",
       R"({"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"]})",
       Operation::kConnect,
       {"", "v1", "pods"},
       "",
       "ns",
       true},
      {"plain wildcard excludes subresources",
       R"({"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"]})",
       Operation::kUpdate,
       {"", "v1", "pods"},
       "status",
       "ns",
       false},
      {"all and all subresources",
       R"({"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]})",
       Operation::kUpdate,
       {"", "v1", "pods"},
       "status",
       "ns",
       true},
      {"pods/* includes pods",
       R"({"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods/*"]})",
       Operation::kCreate,
       {"", "v1", "pods"},
       "",
       "ns",
       true},
      {"*/scale",
       R"({"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/scale"]})",
       Operation::kUpdate,
       {"apps", "v1", "deployments"},
       "scale",
       "ns",
       true},
      {"namespaces are cluster-scoped",
       R"({"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*"],"scope":"Namespaced"})",
       Operation::kUpdate,
       {"", "v1", "namespaces"},
       "",
       "x",
       false},
      {"cluster scope",
       R"({"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*"],"scope":"Cluster"})",
       Operation::kUpdate,
       {"", "v1", "nodes"},
       "",
       "",
       true},
      {"resource names",
       R"({"operations":["*"],"apiGroups":[""],"apiVersions":["v1"],"resources":["*"],"resourceNames":["other"]})",
       Operation::kUpdate,
       {"", "v1", "pods"},
       "",
       "ns",
       false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    Attributes attributes{.operation = c.operation, .subresource = c.subresource, .name_space = c.name_space};
    attributes.name = "x";
    attributes.resource = c.resource;
    EXPECT_EQ(ResourceRule::Of(Parse(arena, c.rule)).Matches(attributes, c.resource), c.want);
  }
}

TEST(Matcher, ObjectSelector) {
  struct Case {
    const char* name;
    Operation operation;
    const char* object;
    bool want;
  };
  constexpr Case kCases[] = {
      {"without the label", Operation::kCreate, R"({"metadata":{"name":"x"}})", true},
      {"with the label", Operation::kCreate, R"({"metadata":{"labels":{"a":"b"}}})", false},
      {"metadata was not sent", Operation::kCreate, R"({"spec":{}})", true},
      {"options of a connection have no labels", Operation::kConnect, R"({"command":["sh"]})", false},
      {"no object", Operation::kDelete, "null", false},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    request::Context context;
    testing::FakeReader reader;
    Attributes attributes{.operation = c.operation, .object = Parse(context.arena, c.object)};
    attributes.resource = {"authorization.k8s.io", "v1", "subjectaccessreviews"};
    Matcher matcher(reader, context, attributes);
    const Criteria criteria = Criteria::OfWebhook(Parse(
        context.arena, R"({"objectSelector":{"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]},)"
                       R"("rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*"]}]})"));
    const auto matched = matcher.MatchNow(criteria);
    ASSERT_TRUE(matched.has_value());
    EXPECT_EQ(matched->has_value(), c.want);
  }
}

TEST(LabelSelector, OfLabelSelectorObject) {
  base::Arena arena;
  const auto selector = LabelSelectorOf(Parse(
      arena,
      R"({"matchLabels":{"a":"b"},"matchExpressions":[{"key":"env","operator":"NotIn","values":["prod","dev"]}]})"));
  EXPECT_TRUE(SelectorMatches(selector, Parse(arena, R"({"a":"b"})")));
  EXPECT_TRUE(SelectorMatches(selector, Parse(arena, R"({"env":"test","a":"b"})")));
  EXPECT_FALSE(SelectorMatches(selector, Parse(arena, R"({"env":"prod","a":"b"})")));
  EXPECT_FALSE(SelectorMatches(selector, Value()));
  EXPECT_TRUE(SelectorMatches(LabelSelectorOf(Value::Map(arena)), Value()));
}

}  // namespace
}  // namespace keelson::admission
