#include "peerproxy/peer_document.h"

#include <gtest/gtest.h>

#include "object/json_text.h"

namespace keelson::peerproxy {
namespace {

TEST(PeerDocument, ResourcesOfAllDocumentsAndGroupsButTheCoreGroup) {
  PeerDocument document;
  EXPECT_TRUE(document.empty());
  ASSERT_TRUE(document
                  .Add(R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
      {"metadata":{"creationTimestamp":null},"versions":[{"version":"v1","resources":[{"resource":"pods","verbs":["get"]}]}]}]})")
                  .ok());
  ASSERT_TRUE(document
                  .Add(R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
      {"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments","verbs":["get"],"subresources":[
         {"subresource":"scale","verbs":["get"]}]}]}]},
      {"metadata":{"name":"stale"},"versions":[{"version":"v1","freshness":"Stale"}]}]})")
                  .ok());
  EXPECT_EQ(document.resources(),
            (std::vector<GroupVersionResource>{{"", "v1", "pods"}, {"apps", "v1", "deployments"}}));
  ASSERT_EQ(document.groups().size(), 2u);
  EXPECT_EQ(document.groups()[std::size_t{0}].Get("metadata", "name").as_string(), "apps");
}

TEST(PeerDocument, OtherDocumentsAreRefused) {
  struct Case {
    const char* json;
    const char* error;
  };
  for (
      const Case& c : {
          Case{R"({"kind":"APIGroupList","apiVersion":"v1","groups":[]})",
               R"(error decoding discovery response: no kind "APIGroupList" is registered for version "v1")"},
          Case{
              R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2beta1","items":[]})",
              R"(error decoding discovery response: no kind "APIGroupDiscoveryList" is registered for version "apidiscovery.k8s.io/v2beta1")"},
      }) {
    PeerDocument document;
    auto added = document.Add(c.json);
    ASSERT_FALSE(added.ok());
    EXPECT_EQ(added.error(), c.error);
    EXPECT_TRUE(document.empty());
  }
  PeerDocument document;
  EXPECT_FALSE(document.Add("<html>").ok());
  EXPECT_FALSE(
      document.Add(R"({"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":7})").ok());
}

}  // namespace
}  // namespace keelson::peerproxy
