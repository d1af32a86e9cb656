#include <gtest/gtest.h>

#include "auth/token_review/authenticator.h"

namespace keelson::auth {
namespace {

TEST(TokenReviewWebhook, Request) {
  EXPECT_EQ(
      TokenReviewRequest("v1", "t\"", {"a", "b"}),
      R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{"token":"t\"","audiences":["a","b"]},"status":{"user":{}}})");
  EXPECT_EQ(
      TokenReviewRequest("v1beta1", "t", {}),
      R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","metadata":{},"spec":{"token":"t"},"status":{"user":{}}})");
}

TEST(TokenReviewWebhook, Answers) {
  const std::string head = R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":)";
  struct Case {
    const char* name;
    std::string body;
    const char* user;       // "-" for none
    const char* audiences;  // joined by spaces
    const char* error;
  };
  const Case kCases[] = {
      {"user", head + R"({"authenticated":true,"user":{"username":"u"}}})", "u", "api", ""},
      {"no user", head + R"({"authenticated":true}})", "", "api", ""},
      {"audiences", head + R"({"authenticated":true,"audiences":["x","api"],"user":{"username":"u"}}})", "u", "api",
       ""},
      {"other audiences", head + R"({"authenticated":true,"audiences":["x"],"user":{"username":"u"}}})", "-", "", ""},
      {"not authenticated", head + "{}}", "-", "", ""},
      {"error", head + R"({"error":"revoked"}})", "-", "", "revoked"},
      {"error of other audiences", head + R"({"error":"revoked","audiences":["x"]}})", "-", "", ""},
      {"other kind", R"({"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1"})", "-", "",
       "converting (v1.SubjectAccessReview) to (v1.TokenReview): unknown conversion"},
      {"no JSON", "not json", "-", "",
       "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { "
       "APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const webhook::Response response{.status = 200, .body = base::SharedBytes::FromString(std::string(c.body))};
    const auto result = ReadTokenReview("v1", response, {"api", "y"}, {"api"});
    EXPECT_EQ(result.user ? result.user->name : "-", c.user);
    EXPECT_EQ(result.Error(), c.error);
    std::string audiences;
    for (const auto& audience : result.audiences) audiences += (audiences.empty() ? "" : " ") + audience;
    EXPECT_EQ(audiences, c.audiences);
  }
}

}  // namespace
}  // namespace keelson::auth
