// Conversion to the hub of versions that are served only with --runtime-config.
#include "registry/catalog/conversion.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::registry {
namespace {

TEST(Conversion, ResourceV1beta1) {
  struct Case {
    const char* name;
    const char* kind;
    const char* beta;
    const char* hub;
  };
  constexpr Case kCases[] = {
      {"a request's own fields go under exactly", "ResourceClaim",
       R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":{"requests":[{"name":"r","allocationMode":"All","deviceClassName":"c"}]}}})",
       R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[{"exactly":{"allocationMode":"All","deviceClassName":"c"},"name":"r"}]}}})"},
      {"alternatives stay", "ResourceClaim",
       R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":{"requests":[{"firstAvailable":[{"deviceClassName":"c","name":"a"}],"name":"r"}]}}})",
       R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":{"requests":[{"firstAvailable":[{"deviceClassName":"c","name":"a"}],"name":"r"}]}}})"},
      {"a template's claim", "ResourceClaimTemplate",
       R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"spec":{"devices":{"requests":[{"name":"r","count":2}]}}}})",
       R"({"apiVersion":"resource.k8s.io/v1","spec":{"spec":{"devices":{"requests":[{"exactly":{"count":2},"name":"r"}]}}}})"},
      {"a device has no wrapping any more", "ResourceSlice",
       R"({"apiVersion":"resource.k8s.io/v1beta1","spec":{"devices":[{"basic":{"attributes":{"a":{"int":1}}},"name":"d"}]}})",
       R"({"apiVersion":"resource.k8s.io/v1","spec":{"devices":[{"attributes":{"a":{"int":1}},"name":"d"}]}})"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    base::Arena arena;
    const Conversion* conversion = FindConversion("resource.k8s.io", "v1beta1", c.kind);
    ASSERT_NE(conversion, nullptr);
    const Value beta = *object::ParseJSON(arena, c.beta), hub = *object::ParseJSON(arena, c.hub);
    EXPECT_EQ(conversion->to_hub(arena, beta), hub);
    EXPECT_EQ(conversion->from_hub(arena, hub), beta);
    EXPECT_EQ(beta, *object::ParseJSON(arena, c.beta)) << "the given one stays";
  }
  EXPECT_EQ(FindConversion("resource.k8s.io", "v1beta2", "ResourceClaim"), nullptr) << "has v1's shape";
}

}  // namespace
}  // namespace keelson::registry
