#include "controllers/object_metadata.h"

#include <gtest/gtest.h>

#include "controllers/names.h"
#include "controllers/resource_table.h"

namespace keelson::controllers {
namespace {

TEST(ObjectMetadata, RoundTrip) {
  ObjectMetadata metadata;
  metadata.name = "web";
  metadata.name_space = "default";
  metadata.uid = "u-1";
  metadata.resource_version = "7";
  metadata.deleting = true;
  metadata.finalizers = {"orphan", "a\"b"};
  metadata.owners = {{"apps/v1", "Deployment", "d", "u-2", true, true}, {"v1", "Pod", "p", "u-3", false, std::nullopt}};
  const auto read = ReadObjectMetadata(MetadataJSON("v1", "ConfigMap", metadata));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "web");
  EXPECT_EQ(read->name_space, "default");
  EXPECT_EQ(read->uid, "u-1");
  EXPECT_EQ(read->resource_version, "7");
  EXPECT_TRUE(read->deleting);
  EXPECT_EQ(read->finalizers, metadata.finalizers);
  EXPECT_EQ(read->owners, metadata.owners);
}

TEST(ObjectMetadata, RefusesBytesThatAreNotAnObject) {
  for (const std::string_view text : {"", "{", "[]", "{}", "{\"metadata\":7}", "k8s\0", "k8s\0\x0a\xff"})
    EXPECT_FALSE(ReadObjectMetadata(text)) << text;
}

constexpr std::string_view kDefinition = R"({"spec":{"group":"example.com","scope":"Namespaced","versions":[
  {"name":"v1beta1","served":true,"schema":{"x":"\"served\":false"}},{"name":"v1","served":true},{"name":"v2","served":false}]},
  "status":{"acceptedNames":{"plural":"ships","kind":"Ship"},"conditions":[{"type":"Established","status":"True"}]}})";

TEST(ResourceTable, CustomResourcesComeAndGo) {
  ResourceTable table;
  const MappedResource* const mapped = table.SetDefinition("ships.example.com", kDefinition);
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(mapped->api_version(), "example.com/v1");
  EXPECT_TRUE(mapped->namespaced);
  EXPECT_EQ(table.Find("example.com/v1beta1", "Ship"), mapped);
  EXPECT_EQ(table.Find("example.com/v2", "Ship"), nullptr);
  EXPECT_EQ(table.Find("v1", "Ship"), nullptr);
  EXPECT_EQ(ObjectPath(*mapped, "example.com/v1", "ns", "a b"), "/apis/example.com/v1/namespaces/ns/ships/a%20b");
  table.RemoveDefinition("ships.example.com");
  EXPECT_EQ(table.Find("example.com/v1", "Ship"), nullptr);
  EXPECT_TRUE(table.All().empty());
}

TEST(ResourceTable, BuiltInKindsFromDiscovery) {
  Discovered discovered;
  const std::vector<std::string> all = {"create", "delete", "list", "watch"};
  discovered.resources = {{{"apps", "v1", "deployments"}, "Deployment", true, true, all},
                          {{"", "v1", "bindings"}, "Binding", true, true, {"create"}}};
  ResourceTable table;
  table.SetDiscovered(discovered);
  ASSERT_NE(table.Find("apps/v1", "Deployment"), nullptr);
  EXPECT_TRUE(table.Find("apps/v1", "Deployment")->watchable);
  EXPECT_EQ(table.Find("apps/v1beta1", "Deployment"), nullptr);
  EXPECT_FALSE(table.Find("v1", "Binding")->watchable);
}

TEST(ControllerNames, ControllerListFollowsUpstream) {
  struct Case {
    std::vector<std::string> list;
    bool want;
  };
  const Case cases[] = {{{"*"}, true},
                        {{}, false},
                        {{"namespace-controller"}, true},
                        {{"*", "-namespace-controller"}, false},
                        {{"serviceaccount-controller"}, false}};
  for (const Case& c : cases) EXPECT_EQ(IsEnabled("namespace-controller", c.list), c.want);
  EXPECT_EQ(CheckControllerList(std::vector<std::string>{"*", "-namespace-controller"}), "");
  EXPECT_EQ(CheckControllerList(std::vector<std::string>{"-foo"}), "\"foo\" is not in the list of known controllers");
}

}  // namespace
}  // namespace keelson::controllers
