#include "auth/webhook_authorizer/match_conditions.h"

#include <gtest/gtest.h>

namespace keelson::auth {
namespace {

Attributes ListPods() {
  Attributes attributes;
  attributes.user = request::User{.name = "jane", .groups = {"dev", "system:authenticated"}, .extra = {{"k", {"v"}}}};
  attributes.verb = "list";
  attributes.resource_request = true;
  attributes.api_version = "v1";
  attributes.resource = "pods";
  attributes.name_space = "ns";
  attributes.field_requirements = {{.field = "spec.nodeName", .equal = true, .value = "n"}};
  return attributes;
}

TEST(MatchConditions, Compile) {
  struct Case {
    const char* expression;
    const char* problem;
  };
  constexpr Case kCases[] = {
      {"request.user == 'jane'", ""},
      {"request.user", "must evaluate to bool but got string"},
      {"request.nope == 'x'",
       "compilation failed: ERROR: <input>:1:8: undefined field 'nope'\n | request.nope == 'x'\n | .......^"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.expression);
    const std::string expression = c.expression;
    const auto compiled = MatchConditions::Compile({&expression, 1});
    EXPECT_EQ(compiled.ok() ? "" : compiled.error(), c.problem);
  }
}

TEST(MatchConditions, Matches) {
  struct Case {
    std::vector<std::string> expressions;
    bool want;
    const char* error;
  };
  const Case cases[] = {
      {{"request.user == 'jane'"}, true, ""},
      {{"request.user == 'jane'", "'ops' in request.groups"}, false, ""},
      {{"!('ops' in request.groups)"}, true, ""},
      {{"has(request.resourceAttributes) && request.resourceAttributes.resource == 'pods'"}, true, ""},
      {{"has(request.nonResourceAttributes)"}, false, ""},
      {{"request.resourceAttributes.subresource == ''"}, true, ""},
      {{"request.extra['k'][0] == 'v'"}, true, ""},
      {{"request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == 'spec.nodeName' && r.operator == "
        "'In' "
        "&& r.values == ['n'])"},
       true,
       ""},
      {{"has(request.resourceAttributes.labelSelector)"}, false, ""},
      // An error counts only when no condition is false.
      {{"request.nonResourceAttributes.path == '/x'", "request.user == 'bob'"}, false, ""},
      {{"request.nonResourceAttributes.path == '/x'"},
       false,
       "cel evaluation error: expression 'request.nonResourceAttributes.path == '/x'' resulted in error: no such key: "
       "nonResourceAttributes"},
  };
  const Attributes attributes = ListPods();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.expressions.front());
    const auto compiled = MatchConditions::Compile(c.expressions);
    ASSERT_TRUE(compiled.ok()) << compiled.error();
    const auto matches = (*compiled)->Matches(attributes);
    EXPECT_EQ(matches.ok() ? "" : matches.error(), c.error);
    if (matches.ok()) EXPECT_EQ(*matches, c.want);
  }
}

}  // namespace
}  // namespace keelson::auth
