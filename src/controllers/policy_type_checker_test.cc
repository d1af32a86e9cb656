#include "controllers/policy_type_checker.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::controllers {
namespace {

constexpr std::string_view kSchemas = R"({
  "Ship": {"type": "object", "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Ship"}],
    "properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}]}}},
  "Spec": {"type": "object", "properties": {
    "size": {"type": "integer"}, "built": {"type": "string", "format": "date-time"}, "port": {"format": "int-or-string"},
    "weight": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "tags": {"type": "object", "additionalProperties": {"type": "string"}},
    "boats": {"type": "array", "items": {"$ref": "#/components/schemas/Spec"}}}}})";

class PolicyTypeCheckerTest : public ::testing::Test {
 public:
  std::string Check(const std::string& expression) {
    const std::string text = R"({"spec":{"validations":[{"expression":")" + expression + "\"}]}}";
    const auto policy = object::ParseJSON(arena_, text);
    const auto schemas = object::ParseJSON(arena_, kSchemas);
    const auto warnings = CheckPolicyTypes(*policy, {{"example.com", "v1", "Ship"}, {"example.com", "v1", "Unknown"}},
                                           {{{"example.com", "v1"}, *schemas}});
    return warnings.empty() ? "" : warnings[0].field_ref + ": " + warnings[0].warning;
  }
  base::Arena arena_;
};

TEST_F(PolicyTypeCheckerTest, Expressions) {
  struct Case {
    const char* expression;
    const char* want;  // part of the warning; "": none
  };
  const Case cases[] = {
      {"object.spec.size > 1", ""},
      {"object.metadata.name == 'a' && object.kind == 'Ship'", ""},
      {"object.metadata.labels == {}", "undefined field 'labels'"},  // custom resources declare the names only
      {"object.spec.built > timestamp('2026-01-02T03:04:05Z')", ""},
      {"object.spec.port == 1 || object.spec.port == 'a'", ""},
      {"object.spec.weight == '1'", "undefined field 'weight'"},
      {"object.spec.tags['a'] == 1", "found no matching overload for '_==_' applied to '(string, int)'"},
      {"object.spec.boats[0].size == 1", "undefined field 'size'"},  // inside of itself: an empty object
      {"object.spec.boats.all(b, b.boats == [])", "undefined field 'boats'"},
      {"oldObject.spec.sise == 1", "example.com/v1, Kind=Ship: ERROR: <input>:1:15: undefined field 'sise'"},
      {"request.userInfo.username == 'a' && namespaceObject.metadata.name == 'b'", ""},
      {"params == 1", "undeclared reference to 'params'"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.expression);
    const std::string got = Check(c.expression);
    if (*c.want == 0) {
      EXPECT_EQ(got, "");
    } else {
      EXPECT_NE(got.find(c.want), std::string::npos) << got;
      EXPECT_TRUE(got.starts_with("spec.validations[0].expression: ")) << got;
    }
  }
}

TEST(TypesToCheck, WildcardsAndSubresourcesAreLeftOut) {
  Discovered discovered;
  discovered.resources = {{{"apps", "v1", "deployments"}, "Deployment", true, true, {}},
                          {{"", "v1", "pods"}, "Pod", true, true, {}}};
  base::Arena arena;
  const auto policy = object::ParseJSON(arena, R"({"spec":{"matchConstraints":{"resourceRules":[
    {"apiGroups":["apps",""],"apiVersions":["v1"],"resources":["pods","deployments","pods/exec"]},
    {"apiGroups":["*"],"apiVersions":["v1"],"resources":["pods"]}]}}})");
  const auto kinds = TypesToCheck(*policy, discovered);
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].kind, "Pod");
  EXPECT_EQ(kinds[1].kind, "Deployment");
}

}  // namespace
}  // namespace keelson::controllers
