#include "meta/status.h"

#include <gtest/gtest.h>

namespace keelson::meta {
namespace {

TEST(Status, JSONOfNotFound) {
  EXPECT_EQ(NewNotFound({"", "pods"}, "web").ToJSON(),
            R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"web\" not found",)"
            R"("reason":"NotFound","details":{"name":"web","kind":"pods"},"code":404})");
}

TEST(Status, DetailsAbsentAndEmptyDiffer) {
  EXPECT_EQ(NewBadRequest("x").ToJSON().find("details"), std::string::npos);
  EXPECT_NE(NewTooManyRequests("x", 0).ToJSON().find("\"details\":{}"), std::string::npos);
}

TEST(Status, InvalidRendersCausesAndMessage) {
  const FieldErrors errors = {
      {FieldError::Type::kRequired, "spec.a", "", ""},
      {FieldError::Type::kInvalid, "spec.b", "\"x\"", "must be y"},
      {FieldError::Type::kInvalid, "spec.b", "\"x\"", "must be y"},
  };
  const Status status = NewInvalid({"apps", "Deployment"}, "d", errors);
  EXPECT_EQ(status.message(),
            "Deployment.apps \"d\" is invalid: [spec.a: Required value, spec.b: Invalid value: \"x\": must be y]");
  ASSERT_TRUE(status.details());
  EXPECT_EQ(status.details()->causes.size(), 3u);
  EXPECT_EQ(status.details()->causes[0].reason, "FieldValueRequired");
  EXPECT_EQ(status.details()->causes[1].message, "Invalid value: \"x\": must be y");
}

TEST(Status, GenericServerResponse) {
  const Status status = NewGenericServerResponse(404, "GET", {}, "", "", 0);
  EXPECT_EQ(status.message(), "the server could not find the requested resource");
  EXPECT_NE(status.ToJSON().find("\"details\":{}"), std::string::npos);
}

TEST(Status, TextIsEscapedAsGoDoes) {
  EXPECT_NE(NewBadRequest("a<b>&\x01\xff").ToJSON().find(R"(a\u003cb\u003e\u0026\u0001\ufffd)"), std::string::npos);
}

}  // namespace
}  // namespace keelson::meta
