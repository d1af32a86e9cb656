#include "auth/abac/policy.h"

#include <gtest/gtest.h>

namespace keelson::auth::abac {
namespace {

TEST(Policy, ParseErrors) {
  struct Case {
    const char* text;
    const char* error;
  };
  constexpr Case kCases[] = {
      {"# only a comment\n\n", ""},
      {"user: a\n", ""},
      {"{\"apiVersion\":\"abac.authorization.kubernetes.io/v1beta1\",\"kind\":\"Policy\",\"spec\":{\"user\":\"a\"}}",
       ""},
      {"\n{\"user\": 5}\n",
       "error reading policy file p, line 2: {\"user\": 5}: json: cannot unmarshal number into Go struct field "
       "Policy.user of type string"},
      {"{\"readonly\": \"x\"}",
       "error reading policy file p, line 1: {\"readonly\": \"x\"}: json: cannot unmarshal string into Go struct field "
       "Policy.readonly of type bool"},
      {"{\"apiVersion\":\"abac.authorization.kubernetes.io/v9\",\"kind\":\"Policy\"}",
       "error reading policy file p, line 1: "
       "{\"apiVersion\":\"abac.authorization.kubernetes.io/v9\",\"kind\":\"Policy\"}: "
       "no kind \"Policy\" is registered for version \"abac.authorization.kubernetes.io/v9\" in scheme "
       "\"pkg/runtime/scheme.go:111\""},
  };
  // The rows below are kube-apiserver's results.
  constexpr Case kDocuments[] = {
      {"null", ""},
      {"{\"kind\":\"Policy\"}", ""},
      {"{\"kind\":\"Policy\",\"apiVersion\":\"abac.authorization.kubernetes.io/v0\"}", ""},
      {"{user: a}",
       "couldn't get version/kind; json parse error: invalid character 'u' looking for beginning of object key string"},
      {"{\"user\":\"a\"} # x",
       "couldn't get version/kind; json parse error: invalid character '#' after top-level value"},
      {"{", "couldn't get version/kind; json parse error: unexpected end of JSON input"},
      {"a: b: c", "yaml: mapping values are not allowed in this context"},
      {"apiVersion: abac.authorization.kubernetes.io/v1beta1",
       "converting (v1beta1.Policy) to (v0.Policy): unknown conversion"},
      {"{\"kind\":\"Policy\",\"apiVersion\":\"a/b/c\"}", "unexpected GroupVersion string: a/b/c"},
      {"{\"kind\":\"Nope\"}",
       "no kind \"Nope\" is registered for version \"abac.authorization.kubernetes.io/v0\" in scheme "
       "\"pkg/runtime/scheme.go:111\""},
  };
  for (const Case& c : kDocuments) {
    SCOPED_TRACE(c.text);
    const auto policy = ParsePolicy(c.text);
    EXPECT_EQ(policy.ok() ? "" : policy.error(), c.error);
  }
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const auto policies = ParsePolicyFile("p", c.text);
    EXPECT_EQ(policies.ok() ? "" : policies.error(), c.error);
  }
  EXPECT_EQ(ParsePolicyFile("p", std::string(70000, 'x')).error(),
            "error reading policy file p: bufio.Scanner: token too long");
}

std::string V1beta1(std::string_view spec) {
  return "{\"apiVersion\":\"abac.authorization.kubernetes.io/v1beta1\",\"kind\":\"Policy\",\"spec\":" +
         std::string(spec) + "}";
}

TEST(Policy, Matches) {
  struct Case {
    const char* name;
    std::string line;
    const char* verb;
    const char* name_space;
    const char* group;
    const char* resource;  // a path when it begins with /
    bool want;
  };
  const Case cases[] = {
      {"all resources", V1beta1(R"({"user":"bob","namespace":"*","resource":"*","apiGroup":"*"})"), "delete", "x",
       "apps", "deployments", true},
      {"paths are not resources", V1beta1(R"({"user":"bob","namespace":"*","resource":"*","apiGroup":"*"})"), "get", "",
       "", "/api", false},
      {"other user", V1beta1(R"({"user":"eve","namespace":"*","resource":"*","apiGroup":"*"})"), "get", "x", "", "pods",
       false},
      {"user and group", V1beta1(R"({"user":"bob","group":"dev","namespace":"*","resource":"pods"})"), "get", "x", "",
       "pods", true},
      {"user and other group", V1beta1(R"({"user":"bob","group":"ops","namespace":"*","resource":"pods"})"), "get", "x",
       "", "pods", false},
      {"nobody", V1beta1(R"({"namespace":"*","resource":"pods"})"), "get", "x", "", "pods", false},
      {"star is authenticated", V1beta1(R"({"user":"*","nonResourcePath":"/healthz"})"), "get", "", "", "/healthz",
       true},
      {"readonly", V1beta1(R"({"user":"bob","namespace":"*","resource":"pods","readonly":true})"), "create", "x", "",
       "pods", false},
      {"path prefix", V1beta1(R"({"user":"bob","nonResourcePath":"/api*"})"), "post", "", "", "/apis/x", true},
      {"v0 everything", R"({"user":"bob"})", "get", "", "", "/x", true},
      {"v0 namespace", R"({"user":"bob","namespace":"x"})", "get", "x", "apps", "deployments", true},
      {"v0 namespace has no paths", R"({"user":"bob","namespace":"x"})", "get", "", "", "/x", false},
      {"v0 all authenticated", R"({"resource":"pods"})", "get", "x", "", "pods", true},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto policy = ParsePolicy(c.line);
    ASSERT_TRUE(policy.ok());
    Attributes attributes;
    attributes.user = request::User{.name = "bob", .groups = {"dev", "system:authenticated"}};
    attributes.verb = c.verb;
    attributes.resource_request = c.resource[0] != '/';
    (attributes.resource_request ? attributes.resource : attributes.path) = c.resource;
    attributes.name_space = c.name_space;
    attributes.api_group = c.group;
    EXPECT_EQ(Matches(*policy, attributes), c.want);
  }
}

}  // namespace
}  // namespace keelson::auth::abac
