#include "admission/webhook/review.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::admission {
namespace {

constexpr std::string_view kUID = "705ab4f5-6393-11e8-b7cc-42010a800002";

std::string ErrorOf(std::string_view body, bool mutating, ReviewVersion version = ReviewVersion::kV1) {
  base::Arena arena;
  const auto read = ReadReview(arena, body, 200, "text/plain", version, kUID, mutating);
  if (read.ok()) return "";
  return (read.error().invalid ? "invalid: " : "call: ") + read.error().text;
}

std::string Review(std::string_view response) {
  return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":")" + std::string(kUID) +
         R"(",)" + std::string(response) + "}}";
}

TEST(AdmissionReview, WritesRequest) {
  base::Arena arena;
  Attributes attributes{.operation = Operation::kUpdate};
  attributes.kind = {"apps", "v1", "Deployment"};
  attributes.resource = {"apps", "v1", "deployments"};
  attributes.subresource = "scale";
  attributes.name = "web";
  attributes.name_space = "ns";
  attributes.dry_run = true;
  attributes.options =
      *object::ParseJSON(arena, R"({"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"]})");
  const ObjectInterfaces::Resource matched{{"apps", "v1beta1", "deployments"}, {"autoscaling", "v1", "Scale"}};
  const request::User user{.name = "jane", .groups = {"a", "b"}, .extra = {{"k", {"v"}}}};
  EXPECT_EQ(WriteReview(attributes, {.version = ReviewVersion::kV1,
                                     .uid = "u",
                                     .matched = matched,
                                     .user = user,
                                     .object = R"({"spec":{}})",
                                     .old_object = ""}),
            R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u",)"
            R"("kind":{"group":"autoscaling","version":"v1","kind":"Scale"},)"
            R"("resource":{"group":"apps","version":"v1beta1","resource":"deployments"},"subResource":"scale",)"
            R"("requestKind":{"group":"apps","version":"v1","kind":"Deployment"},)"
            R"("requestResource":{"group":"apps","version":"v1","resource":"deployments"},)"
            R"("requestSubResource":"scale","name":"web","namespace":"ns","operation":"UPDATE",)"
            R"("userInfo":{"username":"jane","groups":["a","b"],"extra":{"k":["v"]}},)"
            R"("object":{"spec":{}},"oldObject":null,"dryRun":true,)"
            R"("options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"]}}})"
            "\n");
}

TEST(AdmissionReview, ResponseErrors) {
  struct Case {
    const char* name;
    std::string body;
    bool mutating;
    const char* want;
  };
  const Case kCases[] = {
      {"allowed", Review(R"("allowed":true)"), true, ""},
      {"empty", "", false, "call: 0-length response with status code: 200 and content type: text/plain"},
      {"absent response", R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})", false,
       "invalid: webhook response was absent"},
      {"other uid",
       R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"x","allowed":true}})", false,
       R"(invalid: expected response.uid="705ab4f5-6393-11e8-b7cc-42010a800002", got "x")"},
      {"no kind", R"({"response":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002","allowed":true}})", false,
       "invalid: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="},
      {"other version",
       R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"allowed":true}})", false,
       "call: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"},
      {"other kind", R"({"kind":"Other","apiVersion":"admission.k8s.io/v1"})", false,
       R"(call: no kind "Other" is registered for version "admission.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111")"},
      {"Status with code 200", R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"no"})", false,
       "call: converting (v1.Status) to (v1.AdmissionReview): unknown conversion"},
      {"patch without type", Review(R"("allowed":true,"patch":"W10=")"), true,
       "invalid: webhook returned response.patch but not response.patchType"},
      {"type without patch", Review(R"("allowed":true,"patchType":"JSONPatch")"), true,
       "invalid: webhook returned response.patchType but not response.patch"},
      {"validating patch", Review(R"("allowed":true,"patch":"W10=","patchType":"JSONPatch")"), false,
       "invalid: validating webhook may not return response.patch"},
      {"validating patch type", Review(R"("allowed":true,"patchType":"JSONPatch")"), false,
       "invalid: validating webhook may not return response.patchType"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(ErrorOf(c.body, c.mutating), c.want);
  }
  EXPECT_EQ(ErrorOf(R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"uid":"x"}})",
                    true, ReviewVersion::kV1beta1),
            "")
      << "v1beta1 does not check the uid";
}

TEST(AdmissionReview, Denials) {
  struct Case {
    const char* name;
    const char* status;
    int code;
    const char* message;
  };
  constexpr Case kCases[] = {
      {"nothing", R"({})", 400, R"(admission webhook "w" denied the request without explanation)"},
      {"message", R"({"message":"no","code":403,"reason":"Forbidden"})", 403,
       R"(admission webhook "w" denied the request: no)"},
      {"reason", R"({"reason":"Because"})", 400, R"(admission webhook "w" denied the request: Because)"},
      {"success code", R"({"code":200,"status":"Success"})", 400,
       R"(admission webhook "w" denied the request without explanation)"},
      {"code of four digits", R"({"code":1000})", 500,
       R"(admission webhook "w" denied the request without explanation)"},
      {"unusual code", R"({"code":599})", 599, R"(admission webhook "w" denied the request without explanation)"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    const auto read = ReadReview(arena, Review(R"("allowed":false,"status":)" + std::string(c.status)), 200, "",
                                 ReviewVersion::kV1, kUID, false);
    ASSERT_TRUE(read.ok());
    const meta::Status status = DenialOf("w", read->status, read->reason);
    EXPECT_EQ(status.code(), c.code);
    EXPECT_EQ(status.message(), c.message);
  }
}

}  // namespace
}  // namespace keelson::admission
