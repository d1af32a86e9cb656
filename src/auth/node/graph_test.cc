#include "auth/node/graph.h"

#include <gtest/gtest.h>

namespace keelson::auth::node {
namespace {

using enum ReferenceType;

PodReferences On(std::string node, std::vector<Reference> references) {
  return {.node_name = std::move(node), .references = std::move(references)};
}

TEST(Graph, ReferencesFollowPods) {
  Graph graph;
  graph.SetPod("ns", "a", On("n1", {{kSecret, "s"}, {kConfigMap, "c"}}));
  graph.SetPod("ns", "b", On("n2", {{kSecret, "s"}}));
  EXPECT_TRUE(graph.PodIsOn("n1", "ns", "a"));
  EXPECT_FALSE(graph.PodIsOn("n2", "ns", "a"));
  EXPECT_TRUE(graph.IsReferenced("n1", kSecret, "ns", "s"));
  EXPECT_TRUE(graph.IsReferenced("n2", kSecret, "ns", "s"));
  EXPECT_FALSE(graph.IsReferenced("n2", kConfigMap, "ns", "c"));
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "other", "s"));
  EXPECT_FALSE(graph.IsReferenced("n1", kConfigMap, "ns", "s"));
  graph.SetPod("ns", "a", On("n1", {{kConfigMap, "c"}}));  // the secret is not referred to any more
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "ns", "s"));
  EXPECT_TRUE(graph.IsReferenced("n1", kConfigMap, "ns", "c"));
  graph.DeletePod("ns", "a");
  EXPECT_FALSE(graph.IsReferenced("n1", kConfigMap, "ns", "c"));
  EXPECT_TRUE(graph.IsReferenced("n2", kSecret, "ns", "s"));
  graph.SetPod("ns", "b", On("", {}));  // not bound
  EXPECT_EQ(graph.size().pods, 0u);
  EXPECT_EQ(graph.size().nodes, 0u);
  EXPECT_EQ(graph.size().vertices, 0u);
}

TEST(Graph, SharedReferenceEndsWithItsLastPod) {
  Graph graph;
  for (const char* pod : {"a", "b"}) graph.SetPod("ns", pod, On("n1", {{kSecret, "s"}}));
  graph.DeletePod("ns", "a");
  EXPECT_TRUE(graph.IsReferenced("n1", kSecret, "ns", "s"));
  graph.DeletePod("ns", "b");
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "ns", "s"));
}

TEST(Graph, PodThatMovesTakesItsReferencesAlong) {
  Graph graph;
  graph.SetPod("ns", "a", On("n1", {{kSecret, "s"}}));
  graph.SetPod("ns", "a", On("n2", {{kSecret, "s"}}));  // deleted and created again, seen as one change
  EXPECT_FALSE(graph.PodIsOn("n1", "ns", "a"));
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "ns", "s"));
  EXPECT_TRUE(graph.PodIsOn("n2", "ns", "a"));
  EXPECT_TRUE(graph.IsReferenced("n2", kSecret, "ns", "s"));
  EXPECT_EQ(graph.size().nodes, 1u);
}

TEST(Graph, NamesDoNotRunIntoNamespaces) {
  Graph graph;
  graph.SetPod("ab", "c", On("n1", {{kSecret, "s"}}));
  EXPECT_FALSE(graph.PodIsOn("n1", "a", "b/c"));
  EXPECT_FALSE(graph.PodIsOn("n1", "a", "bc"));
  EXPECT_FALSE(graph.PodIsOn("", "x", "y"));  // neither the node nor the pod is known
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "a", "b/s"));
}

TEST(Graph, VolumesLeadToSecretsOfOtherNamespaces) {
  Graph graph;
  graph.SetVolume("pv", {"ns", "claim"}, {{"storage", "s"}});
  EXPECT_FALSE(graph.VolumeIsUsed("n1", "pv"));
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "storage", "s"));
  graph.SetPod("ns", "a", On("n1", {{kPersistentVolumeClaim, "claim"}}));
  EXPECT_TRUE(graph.VolumeIsUsed("n1", "pv"));
  EXPECT_TRUE(graph.IsReferenced("n1", kSecret, "storage", "s"));
  EXPECT_FALSE(graph.IsReferenced("n2", kSecret, "storage", "s"));
  graph.SetVolume("pv", {"ns", "other"}, {{"storage", "s"}});
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "storage", "s"));
  graph.SetVolume("pv", {"ns", "claim"}, {{"storage", "t"}});
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "storage", "s"));
  EXPECT_TRUE(graph.IsReferenced("n1", kSecret, "storage", "t"));
  graph.DeleteVolume("pv");
  EXPECT_FALSE(graph.IsReferenced("n1", kSecret, "storage", "t"));
  graph.DeletePod("ns", "a");
  EXPECT_EQ(graph.size().vertices, 0u);
  EXPECT_EQ(graph.size().volumes, 0u);
}

TEST(Graph, DirectKinds) {
  Graph graph;
  graph.SetDirect(DirectType::kVolumeAttachment, "", "va", "n1");
  EXPECT_TRUE(graph.IsDirect("n1", DirectType::kVolumeAttachment, "", "va"));
  EXPECT_FALSE(graph.IsDirect("n1", DirectType::kResourceSlice, "", "va"));
  EXPECT_FALSE(graph.IsDirect("n2", DirectType::kVolumeAttachment, "", "va"));
  graph.SetDirect(DirectType::kVolumeAttachment, "", "va", "");
  EXPECT_FALSE(graph.IsDirect("n1", DirectType::kVolumeAttachment, "", "va"));
}

}  // namespace
}  // namespace keelson::auth::node
