#include "peerproxy/discovery_merge.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::peerproxy {
namespace {

using Lists = std::vector<std::vector<std::string>>;
using Names = std::vector<std::string>;

TEST(MergePreservingRelativeOrder, KeepsTheOrderOfEveryList) {
  struct Case {
    const char* name;
    Lists lists;
    Names want;
  };
  const Case cases[] = {
      {"nothing", {}, {}},
      {"a list with all items is taken as it is", {{"c", "a", "b"}, {"a", "b"}}, {"c", "a", "b"}},
      {"items without an order go by name", {{"a", "c"}, {"b", "c"}}, {"a", "b", "c"}},
      {"inserted between", {{"a", "z"}, {"a", "m", "z"}, {"a", "b", "z"}}, {"a", "b", "m", "z"}},
      {"lists that contradict each other and miss items go by name",
       {{"b", "a", "x"}, {"a", "b", "y"}},
       {"a", "b", "x", "y"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(MergePreservingRelativeOrder(c.lists), c.want);
  }
}

class MergeDiscoveryTest : public ::testing::Test {
 protected:
  ServerDiscovery Server(const char* id, const char* groups) { return {id, *object::ParseJSON(arena_, groups)}; }
  std::string Merge(std::vector<ServerDiscovery> servers) {
    return object::ToJSON(MergeDiscovery(arena_, "b", servers));
  }
  base::Arena arena_;
};

TEST_F(MergeDiscoveryTest, TheLocalListWherePeersAddNothing) {
  const char* const groups =
      R"([{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[{"resource":"r"}]}]}])";
  const auto local = Server("b", groups);
  const Value merged = MergeDiscovery(arena_, "b", std::vector{Server("a", groups), local, Server("c", groups)});
  EXPECT_EQ(merged.identity(), local.groups.identity());
  EXPECT_EQ(MergeDiscovery(arena_, "b", std::vector{local}).identity(), local.groups.identity());
}

TEST_F(MergeDiscoveryTest, GroupsVersionsAndResourcesOfAll) {
  EXPECT_EQ(
      Merge(
          {Server(
               "b",
               R"([{"metadata":{"name":"x"},"versions":[{"version":"v1","resources":[{"resource":"q"}],"freshness":"Current"}]},
                             {"metadata":{"name":"z"},"versions":[]}])"),
           Server(
               "c",
               R"([{"metadata":{"name":"x"},"versions":[{"version":"v2","resources":[]},{"version":"v1","resources":[{"resource":"p"},{"resource":"q"}]}]},
                             {"metadata":{"name":"y"},"versions":[]},{"metadata":{"name":"z"},"versions":[]}])")}),
      R"([{"metadata":{"name":"x"},"versions":[{"version":"v2","resources":[]},)"
      R"({"version":"v1","resources":[{"resource":"p"},{"resource":"q"}],"freshness":"Current"}]},)"
      R"({"metadata":{"name":"y"},"versions":[]},{"metadata":{"name":"z"},"versions":[]}])");
}

TEST_F(MergeDiscoveryTest, VerbsAndSubresourcesOfBothSorted) {
  EXPECT_EQ(
      Merge({Server("b", R"([{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[
               {"resource":"r","scope":"Cluster","verbs":["watch","get"],"subresources":[{"subresource":"status","verbs":["get"]}]}]}]}])"),
             Server("c", R"([{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[
               {"resource":"r","scope":"Namespaced","verbs":["create"],"subresources":[{"subresource":"scale"},{"subresource":"status","verbs":["put"]}]}]}]}])")}),
      R"([{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[{"resource":"r","scope":"Cluster",)"
      R"("verbs":["create","get","watch"],"subresources":[{"subresource":"scale"},{"subresource":"status","verbs":["put"]}]}]}]}])");
}

TEST_F(MergeDiscoveryTest, TheLowestServerIDDescribesWhatBothServe) {
  EXPECT_EQ(
      Merge(
          {Server(
               "b",
               R"([{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[{"resource":"r","scope":"Cluster"}]}]}])"),
           Server(
               "a",
               R"([{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[{"resource":"r","scope":"Namespaced"}]}]}])")}),
      R"([{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[{"resource":"r","scope":"Namespaced"}]}]}])");
}

}  // namespace
}  // namespace keelson::peerproxy
