#include "webhook/review_answer.h"

#include <gtest/gtest.h>

#include "codec/json.h"

namespace keelson::webhook {
namespace {

constexpr ReviewKind kTokenReview = {"authentication.k8s.io", "v1", "TokenReview"};
constexpr std::string_view kTypeMeta =
    "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
constexpr std::string_view kNoKind = "couldn't get version/kind; json parse error: ";
constexpr std::string_view kScheme = " in scheme \"pkg/runtime/scheme.go:111\"";

// The rows are kube-apiserver's results.
TEST(ReviewAnswer, Decode) {
  struct Case {
    const char* name;
    std::string body;
    std::string status;  // the review's, as JSON
    std::string error;
  };
  const std::string head = R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":)";
  const auto typed = [](std::string_view what) { return "json: cannot unmarshal " + std::string(what); };
  const auto no_meta = [&](std::string_view what) {
    return std::string(kNoKind) + typed(what) + " into Go value of type " + std::string(kTypeMeta);
  };
  const Case cases[] = {
      {"review", head + R"({"authenticated":true}})", R"({"authenticated":true})", ""},
      {"kind is assumed", R"({"apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true}})",
       R"({"authenticated":true})", ""},
      {"version is assumed", R"({"kind":"TokenReview","status":{"authenticated":true}})", R"({"authenticated":true})",
       ""},
      {"version of the group is assumed", R"({"apiVersion":"authentication.k8s.io/","status":{"authenticated":true}})",
       R"({"authenticated":true})", ""},
      {"empty object", "{}", "null", ""},
      {"null", "null", "null", ""},
      {"YAML", "kind: TokenReview\nstatus:\n  error: x\n", R"({"error":"x"})", ""},
      {"names are case-sensitive", head + R"({"Authenticated":true}})", "null", ""},
      {"bytes that are not UTF-8", head + "{\"error\":\"\xff\"}}", "{\"error\":\"\xef\xbf\xbd\"}", ""},
      {"no body", "", "", "0-length response with status code: 200 and content type: application/json"},
      {"list", "[]", "", no_meta("array")},
      {"number", "7", "", no_meta("number")},
      {"text", "not json", "", no_meta("string")},
      {"cut", R"({"kind":"TokenReview")", "", std::string(kNoKind) + "unexpected end of JSON input"},
      {"trailing", "{}}", "", std::string(kNoKind) + "invalid character '}' after top-level value"},
      {"other kind", R"({"kind":"Pod","apiVersion":"v1"})", "",
       "converting (v1.Pod) to (v1.TokenReview): unknown conversion"},
      {"other version", R"({"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1"})", "",
       "converting (v1beta1.TokenReview) to (v1.TokenReview): unknown conversion"},
      {"Status", R"({"kind":"Status","apiVersion":"v1","status":"Failure"})", "",
       "converting (v1.Status) to (v1.TokenReview): unknown conversion"},
      {"unknown kind", R"({"kind":"Nonsense","apiVersion":"authentication.k8s.io/v1"})", "",
       R"(no kind "Nonsense" is registered for version "authentication.k8s.io/v1")" + std::string(kScheme)},
      {"unknown core kind", R"({"kind":"Nonsense","apiVersion":"v1"})", "",
       R"(no kind "Nonsense" is registered for version "v1")" + std::string(kScheme)},
      {"other group without version", R"({"apiVersion":"apps/"})", "",
       R"(Object 'apiVersion' is missing in '{"apiVersion":"apps/"}')"},
      {"three parts", R"({"apiVersion":"a/b/c"})", "", "unexpected GroupVersion string: a/b/c"},
      {"wrong field", head + R"({"authenticated":"yes"}})", "",
       typed("string") + " into Go struct field TokenReviewStatus.status.authenticated of type bool"},
      {"wrong item", head + R"({"user":{"groups":[1]}}})", "",
       typed("number") + " into Go struct field UserInfo.status.user.groups of type string"},
      {"wrong status", head + "[]}", "",
       typed("array") + " into Go struct field TokenReview.status of type v1.TokenReviewStatus"},
      {"wrong user", head + R"({"user":"jane"}})", "",
       typed("string") + " into Go struct field TokenReviewStatus.status.user of type v1.UserInfo"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    const auto decoded = DecodeReviewAnswer(
        arena, {.status = 200, .body = base::SharedBytes::FromString(std::string(c.body))}, kTokenReview);
    EXPECT_EQ(decoded.ok() ? "" : decoded.error(), c.error);
    if (!decoded.ok()) continue;
    std::string status;
    codec::EncodeJSON((*decoded)["status"], status);
    EXPECT_EQ(status, c.status);
  }
}

}  // namespace
}  // namespace keelson::webhook
