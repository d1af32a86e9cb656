#include "meta/status.h"

#include <gtest/gtest.h>

#include "base/scaling_test.h"

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

TEST(FieldErrors, AreBounded) {
  FieldErrors errors;
  for (int i = 0; i < 1500; ++i) {
    errors.push_back({FieldError::Type::kRequired, "f" + std::to_string(i), "", ""});
  }
  EXPECT_EQ(errors.size(), FieldErrors::kCountMax);
  EXPECT_EQ(errors.dropped(), 500u);
  EXPECT_TRUE(AggregateMessage(errors).ends_with("f999: Required value, and 500 more errors]"));
  FieldErrors large;
  for (int i = 0; i < 100; ++i) large.push_back({FieldError::Type::kInvalid, "f", std::string(100'000, 'x'), "d"});
  EXPECT_LT(NewInvalid({"", "Pod"}, "p", large).ToJSON().size(), 4u << 20);
}

TEST(FieldErrors, MessagesOfManyErrorsAreLinear) {
  const auto scaling = base::Measure(
      [](std::size_t n) {
        FieldErrors errors;
        // As insert() does, which has no bound.
        for (std::size_t i = 0; i < n; ++i) {
          errors.insert(errors.end(), {FieldError::Type::kInvalid, "metadata.finalizers", std::to_string(i), "wrong"});
        }
        AggregateMessage(errors);
      },
      4'000, 24'000);
  EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope;
}

}  // namespace
}  // namespace keelson::meta
