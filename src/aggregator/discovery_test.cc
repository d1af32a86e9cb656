#include "aggregator/discovery.h"

#include <gtest/gtest.h>

#include "aggregator/proxy_handler.h"
#include "base/scaling_test.h"

namespace keelson::aggregator {
namespace {

APIServicePtr Service(const char* group, const char* version, std::int32_t priority, std::int32_t version_priority) {
  auto service = std::make_shared<APIService>();
  service->group = group;
  service->version = version;
  service->name = std::string(version) + "." + group;
  service->group_priority = priority;
  service->version_priority = version_priority;
  return service;
}

TEST(Discovery, LegacyResourcesBecomeDiscoveryResources) {
  EXPECT_EQ(
      ResourcesFromLegacy(
          R"({"kind":"APIResourceList","groupVersion":"g/v1","resources":[
              {"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["get"],"shortNames":["wi"]},
              {"name":"widgets/status","singularName":"","namespaced":true,"kind":"Widget","verbs":["get"]}]})"),
      R"([{"resource":"widgets","responseKind":{"group":"","version":"","kind":"Widget"},"scope":"Namespaced",)"
      R"("singularResource":"widget","verbs":["get"],"shortNames":["wi"],"subresources":[{"subresource":"status",)"
      R"("responseKind":{"group":"","version":"","kind":"Widget"},"verbs":["get"]}]}])");
  EXPECT_EQ(ResourcesFromLegacy("no"), "");
}

TEST(Discovery, ResourcesWithoutAResponseKindGetAnEmptyOne) {
  const auto versions = VersionsOf(
      R"({"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[)"
      R"({"resource":"jobs","subresources":[{"subresource":"status"}]}]}]}]})");
  ASSERT_EQ(versions.size(), 1u);
  EXPECT_EQ(
      versions.at("g/v1"),
      R"([{"resource":"jobs","subresources":[{"subresource":"status","responseKind":{"group":"","version":"","kind":""}}],)"
      R"("responseKind":{"group":"","version":"","kind":""}}])");
}

TEST(Discovery, VersionsByPriorityThenAsVersions) {
  EXPECT_EQ(OrderedVersions({Service("g", "v1", 1, 10), Service("g", "v2", 1, 10), Service("g", "v1beta1", 1, 20)}),
            (std::vector<std::string>{"v1beta1", "v2", "v1"}));
  EXPECT_EQ(APIGroupJSON("g", {"v2", "v1"}),
            R"({"name":"g","versions":[{"groupVersion":"g/v2","version":"v2"},{"groupVersion":"g/v1","version":"v1"}],)"
            R"("preferredVersion":{"groupVersion":"g/v2","version":"v2"}})");
}

TEST(WorstCase, LegacySubresourcesFindTheirResourcesByHash) {
  const auto scaling = base::Measure(
      [](std::size_t n) {
        std::string list = R"({"kind":"APIResourceList","resources":[{"name":"r"})";
        for (std::size_t i = 0; i < n; ++i) list += R"(,{"name":"r)" + std::to_string(i) + R"(/status"})";
        EXPECT_GT(ResourcesFromLegacy(list + "]}").size(), n);
      },
      5'000, 20'000);
  EXPECT_FALSE(base::IsSuperLinear(scaling)) << "slope " << scaling.slope << ", " << scaling.large << " s";
}

}  // namespace
}  // namespace keelson::aggregator
