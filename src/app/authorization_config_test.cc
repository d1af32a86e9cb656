#include "app/authorization_config.h"

#include <gtest/gtest.h>

namespace keelson::app {
namespace {

constexpr std::string_view kHead =
    "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n";
constexpr std::string_view kHook =
    "timeout: 3s, subjectAccessReviewVersion: v1, failurePolicy: NoOpinion, connectionInfo: {type: InClusterConfig}";

std::string Hook(std::string_view fields) {
  return "- {type: Webhook, name: hook, webhook: {" + std::string(fields) + "}}\n";
}

TEST(AuthorizationConfiguration, Errors) {
  struct Case {
    const char* name;
    std::string text;
    const char* error;
  };
  const std::string head(kHead);
  const std::string hook(kHook);
  const Case cases[] = {
      {"fine", head + "- {type: RBAC, name: rbac}\n" + Hook(hook), ""},
      {"empty", "", "authorizers: Required value: at least one authorization mode must be defined"},
      {"other kind", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n",
       "failed to load AuthorizationConfiguration from file: expected AuthorizationConfiguration, got "
       "*apiserver.AuthenticationConfiguration"},
      {"other version", "apiVersion: apiserver.config.k8s.io/v7\nkind: AuthorizationConfiguration\n",
       "failed to load AuthorizationConfiguration from file: no kind \"AuthorizationConfiguration\" is registered for "
       "version \"apiserver.config.k8s.io/v7\" in scheme \"pkg/runtime/scheme.go:111\""},
      {"no kind", "{\"a\":1}",
       "failed to load AuthorizationConfiguration from file: Object 'Kind' is missing in '{\"a\":1}'"},
      {"null", "null", "failed to load AuthorizationConfiguration from file: Object 'Kind' is missing in 'null'"},
      {"no version", "kind: AuthorizationConfiguration",
       "failed to load AuthorizationConfiguration from file: Object 'apiVersion' is missing in 'kind: "
       "AuthorizationConfiguration'"},
      {"three parts", "{\"kind\":\"AuthorizationConfiguration\",\"apiVersion\":\"a/b/c\"}",
       "failed to load AuthorizationConfiguration from file: unexpected GroupVersion string: a/b/c"},
      {"text that begins as JSON", "{kind: AuthorizationConfiguration}",
       "failed to load AuthorizationConfiguration from file: couldn't get version/kind; json parse error: invalid "
       "character 'k' looking for beginning of object key string"},
      {"two objects", "{} {}",
       "failed to load AuthorizationConfiguration from file: couldn't get version/kind; json parse error: invalid "
       "character '{' after top-level value"},
      {"wrong type", head + "- x\n",
       "failed to load AuthorizationConfiguration from file: json: cannot unmarshal string into Go struct field "
       "AuthorizationConfiguration.authorizers of type v1.AuthorizerConfiguration"},
      {"unknown field", head + "- {type: RBAC, name: rbac, typo: 1}\n",
       "failed to load AuthorizationConfiguration from file: strict decoding error: unknown field "
       "\"authorizers[0].typo\""},
      {"type twice", head + "- {type: RBAC, name: rbac}\n- {type: RBAC, name: rbac2}\n",
       "authorizers[1].type: Duplicate value: \"RBAC\""},
      {"unknown type", head + "- {type: Nope, name: nope}\n",
       "authorizers[0].type: Unsupported value: \"Nope\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", "
       "\"Node\", \"RBAC\", \"Webhook\""},
      {"wrong name", head + "- {type: Node, name: nodes}\n", "expected name node for authorizer Node instead of nodes"},
      {"webhook missing", head + "- {type: Webhook, name: hook}\n",
       "authorizers[0].webhook: Required value: required when type=Webhook"},
      {"webhook for RBAC", head + "- {type: RBAC, name: rbac, webhook: {" + hook + "}}\n",
       "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook"},
      {"webhook empty", head + Hook(""),
       "[authorizers[0].timeout: Required value, authorizers[0].subjectAccessReviewVersion: Required value, "
       "authorizers[0].failurePolicy: Required value, authorizers[0].connectionInfo.type: Required value]"},
      {"condition without version", head + Hook(hook + ", matchConditions: [{expression: 'true'}]"),
       "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are "
       "specified"},
      {"bad condition",
       head + Hook(hook + ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: bad}]"),
       "authorizers[0].matchConditions[0].expression: Invalid value: \"bad\": why"},
      {"condition twice",
       head + Hook(hook + ", matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{expression: a}, "
                          "{expression: a}]"),
       "authorizers[0].matchConditions[1].expression: Duplicate value: \"a\""},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto config = ParseAuthorizationConfiguration(
        c.text, [](const std::string& expression) { return expression == "bad" ? std::string("why") : std::string(); });
    EXPECT_EQ(config.ok() ? "" : config.error(), c.error);
  }
}

TEST(AuthorizationConfiguration, Defaults) {
  const auto config =
      ParseAuthorizationConfiguration(std::string(kHead) + Hook(std::string(kHook) + ", authorizedTTL: 0s"),
                                      [](const std::string&) { return std::string(); });
  ASSERT_TRUE(config.ok());
  const AuthorizationWebhook& webhook = *config->authorizers[0].webhook;
  EXPECT_EQ(webhook.authorized_ttl, std::chrono::minutes(5));
  EXPECT_EQ(webhook.unauthorized_ttl, std::chrono::seconds(30));
  EXPECT_TRUE(webhook.cache_authorized);
  EXPECT_TRUE(webhook.cache_unauthorized);
}

}  // namespace
}  // namespace keelson::app
