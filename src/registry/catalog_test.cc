#include "registry/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace keelson::registry {
namespace {

TEST(Catalog, EveryServedTableHasADefinition) {
  for (const schema::Package* package : schema::Packages()) {
    if (!package->serves || VersionsByPriority(package->group).empty()) continue;
    const auto versions = VersionsByPriority(package->group);
    if (std::ranges::find(versions, package->version) == versions.end()) continue;
    for (const schema::Resource& table : package->resources) {
      const auto definition = Catalog::BuiltIn()->Find(table.group, table.plural);
      ASSERT_TRUE(definition) << table.group << "/" << table.plural;
      const ServedVersion* served = definition->FindVersion(table.group, table.version);
      ASSERT_NE(served, nullptr) << table.group << "/" << table.version << "/" << table.plural;
      EXPECT_EQ(served->table, &table);
      EXPECT_EQ(served->type, table.type);
    }
  }
}

struct Row {
  std::string_view group, plural, hub, stored, prefix;
};
TEST(Catalog, HubAndStoredVersions) {
  const Row rows[] = {
      {"", "pods", "v1", "v1", "/pods"},
      {"autoscaling", "horizontalpodautoscalers", "autoscaling/v2", "autoscaling/v2", "/horizontalpodautoscalers"},
      {"events.k8s.io", "events", "v1", "v1", "/events"},
      {"resource.k8s.io", "resourceclaims", "resource.k8s.io/v1", "resource.k8s.io/v1", "/resourceclaims"},
      {"apiextensions.k8s.io", "customresourcedefinitions", "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1",
       "/apiextensions.k8s.io/customresourcedefinitions"},
  };
  for (const Row& row : rows) {
    const auto definition = Catalog::BuiltIn()->Find(row.group, row.plural);
    ASSERT_TRUE(definition) << row.plural;
    EXPECT_EQ(definition->hub_version().group_version.ToString(), row.hub) << row.plural;
    EXPECT_EQ(definition->layout.storage_version.ToString(), row.stored) << row.plural;
    EXPECT_EQ(definition->layout.resource_prefix, row.prefix);
  }
}

TEST(Catalog, EventsAreOneDefinitionInTwoGroups) {
  const auto core = Catalog::BuiltIn()->Find("", "events");
  EXPECT_EQ(core, Catalog::BuiltIn()->Find("events.k8s.io", "events"));
  EXPECT_EQ(core->versions.size(), 2u);
  EXPECT_TRUE(core->traits.expires);
  EXPECT_FALSE(core->layout.watch_cache);
}

TEST(Catalog, FindsTheVersionOfAKind) {
  const Catalog& catalog = *Catalog::BuiltIn();
  const ServedVersion* scaler = catalog.FindKind({"autoscaling", "v1", "HorizontalPodAutoscaler"});
  ASSERT_NE(scaler, nullptr);
  EXPECT_EQ(scaler->type, schema::FindKind("autoscaling", "v1", "HorizontalPodAutoscaler"));
  EXPECT_NE(scaler->conversion, nullptr);
  EXPECT_NE(catalog.FindKind({"", "v1", "Event"}), nullptr);
  EXPECT_NE(catalog.FindKind({"events.k8s.io", "v1", "Event"}), nullptr);
  EXPECT_EQ(catalog.FindKind({"events.k8s.io", "v2", "Event"}), nullptr);
  EXPECT_EQ(catalog.FindKind({"", "v1", "Status"}), nullptr);  // no resource
  EXPECT_EQ(catalog.FindKind({"example.com", "v1", "Event"}), nullptr);
}

TEST(Catalog, WithAndWithoutLeaveTheOriginalAlone) {
  auto widget = std::make_shared<ResourceDefinition>();
  widget->resource = {"example.com", "widgets"};
  widget->kind = {"example.com", "Widget"};
  widget->versions.push_back({.group_version = {"example.com", "v1"}});
  const auto before = Catalog::BuiltIn();
  const auto with = before->With(widget);
  EXPECT_FALSE(before->Find("example.com", "widgets"));
  EXPECT_EQ(with->Find("example.com", "widgets"), widget);
  EXPECT_EQ(with->Find("", "pods"), before->Find("", "pods"));
  EXPECT_EQ(with->size(), before->size() + 1);
  EXPECT_FALSE(with->Without({"example.com", "widgets"})->Find("example.com", "widgets"));
  EXPECT_TRUE(with->Find("example.com", "widgets"));
}

}  // namespace
}  // namespace keelson::registry
