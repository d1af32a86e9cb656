#include "controllers/namespace_conditions.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::controllers {
namespace {

TEST(NamespaceConditions, SuccessConditions) {
  base::Arena arena;
  const Value name_space = Value::Map(arena);
  const NamespaceConditions conditions;
  EXPECT_TRUE(conditions.Update(arena, name_space, "2026-01-02T03:04:05Z"));
  const Value written = name_space.Get("status", "conditions");
  ASSERT_EQ(written.size(), 5u);
  EXPECT_EQ(
      object::ToJSON(written.items()[0]),
      R"({"type":"NamespaceDeletionDiscoveryFailure","lastTransitionTime":"2026-01-02T03:04:05Z","status":"False",)"
      R"("reason":"ResourcesDiscovered","message":"All resources successfully discovered"})");
  EXPECT_FALSE(conditions.Update(arena, name_space, "2026-01-02T03:04:06Z"));
}

TEST(NamespaceConditions, Failures) {
  base::Arena arena;
  const Value name_space = Value::Map(arena);
  NamespaceConditions conditions;
  conditions.DiscoveryFailed(1, "unable to retrieve the complete list of server APIs: a/v1: stale");
  conditions.ContentFailed("z");
  conditions.ContentFailed("a");
  conditions.Remaining({{"pods.", 2}, {"deployments.apps", 1}}, {{"b/f", 3}});
  EXPECT_TRUE(conditions.Update(arena, name_space, "2026-01-02T03:04:05Z"));
  const Value written = name_space.Get("status", "conditions");
  const std::string_view want[] = {
      "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: a/v1: stale",
      "All legacy kube types successfully parsed", "Failed to delete all resource types, 2 remaining: a, z",
      "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances",
      "Some content in the namespace has finalizers remaining: b/f in 3 resource instances"};
  for (std::size_t i = 0; i < std::size(want); ++i) {
    EXPECT_EQ(written.items()[i]["message"].as_string(), want[i]);
    EXPECT_EQ(written.items()[i]["status"].as_string(), i == 1 ? "False" : "True");
  }
  // The time stays while the status does.
  NamespaceConditions better;
  better.Remaining({{"pods.", 1}}, {});
  EXPECT_TRUE(better.Update(arena, name_space, "2026-01-02T03:04:09Z"));
  EXPECT_EQ(written.items()[3]["lastTransitionTime"].as_string(), "2026-01-02T03:04:05Z");
  EXPECT_EQ(written.items()[4]["lastTransitionTime"].as_string(), "2026-01-02T03:04:09Z");
}

}  // namespace
}  // namespace keelson::controllers
