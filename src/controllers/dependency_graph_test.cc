// The graph of owners: what changes make the collector look at.
#include "controllers/dependency_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace keelson::controllers {
namespace {

class DependencyGraphTest : public ::testing::Test {
 public:
  DependencyGraphTest()
      : graph_({.attempt_to_delete = [this](const std::string& uid) { deletes_.push_back(uid); },
                .attempt_to_delete_rate_limited = [this](const std::string& uid) { later_.push_back(uid); },
                .attempt_to_orphan = [this](const std::string& uid) { orphans_.push_back(uid); },
                .invalid_namespace =
                    [this](const DependencyGraph::Node& node, const OwnerReference& owner) {
                      invalid_.push_back(node.identity.uid + "->" + owner.uid);
                    }}) {}

  static ObjectIdentity Identity(const std::string& uid, const std::string& name_space = "ns") {
    return {"v1", "ConfigMap", name_space, "name-" + uid, uid};
  }
  static OwnerReference Reference(const std::string& uid, bool block = false) {
    return {"v1", "ConfigMap", "name-" + uid, uid, block, std::nullopt};
  }
  void Observe(const std::string& uid, std::vector<OwnerReference> owners, std::vector<std::string> finalizers = {},
               bool deleting = false, const std::string& name_space = "ns") {
    ObjectMetadata metadata;
    metadata.uid = uid;
    metadata.owners = std::move(owners);
    metadata.finalizers = std::move(finalizers);
    metadata.deleting = deleting;
    graph_.Observe(Identity(uid, name_space), metadata);
  }
  std::vector<std::string> TakeDeletes() {
    std::ranges::sort(deletes_);
    return std::exchange(deletes_, {});
  }
  using Uids = std::vector<std::string>;

  DependencyGraph graph_;
  Uids deletes_, later_, orphans_, invalid_;
};

TEST_F(DependencyGraphTest, ObjectsWithoutOwnersHaveNoNode) {
  for (int i = 0; i < 100; ++i) Observe(std::to_string(i), {});
  EXPECT_EQ(graph_.size(), 0u);
  graph_.Deleted(Identity("7"));
  EXPECT_TRUE(TakeDeletes().empty());
}

TEST_F(DependencyGraphTest, OwnersAreVirtualUntilSeen) {
  Observe("child", {Reference("owner")});
  EXPECT_EQ(TakeDeletes(), Uids{"owner"});
  ASSERT_NE(graph_.Find("owner"), nullptr);
  EXPECT_TRUE(graph_.Find("owner")->is_virtual);
  Observe("owner", {});
  EXPECT_FALSE(graph_.Find("owner")->is_virtual);
  EXPECT_TRUE(TakeDeletes().empty());
  graph_.Deleted(Identity("owner"));
  EXPECT_EQ(TakeDeletes(), Uids{"child"});
  EXPECT_TRUE(graph_.absent_owners().Has(Identity("owner")));
  graph_.Deleted(Identity("child"));
  EXPECT_EQ(graph_.size(), 0u);
}

TEST_F(DependencyGraphTest, AbsentOwnersMakeTheirDependentsCandidates) {
  Observe("a", {Reference("owner")});
  Observe("b", {Reference("owner")});
  TakeDeletes();
  graph_.VirtualDeleted(Identity("owner"));
  EXPECT_EQ(TakeDeletes(), (Uids{"a", "b"}));
  EXPECT_EQ(graph_.Find("owner"), nullptr);
}

TEST_F(DependencyGraphTest, OwnersAreForgottenWithTheirLastDependent) {
  Observe("child", {Reference("owner")});
  Observe("owner", {});
  Observe("child", {});
  EXPECT_EQ(graph_.size(), 0u);
}

TEST_F(DependencyGraphTest, ForegroundDeletionWaitsForBlockingDependents) {
  Observe("owner", {Reference("root")});
  Observe("blocking", {Reference("owner", true)});
  Observe("loose", {Reference("owner", false)});
  TakeDeletes();
  Observe("owner", {Reference("root")}, {"foregroundDeletion"}, true);
  EXPECT_EQ(TakeDeletes(), (Uids{"blocking", "loose", "owner"}));
  const auto blocking = graph_.Find("owner")->BlockingDependents();
  ASSERT_EQ(blocking.size(), 1u);
  EXPECT_EQ(blocking[0]->identity.uid, "blocking");
  Observe("owner", {Reference("root")}, {"foregroundDeletion"}, true);  // told once
  EXPECT_TRUE(TakeDeletes().empty());
  graph_.Deleted(Identity("blocking"));
  EXPECT_EQ(TakeDeletes(), Uids{"owner"});
  EXPECT_TRUE(graph_.Find("owner")->BlockingDependents().empty());
}

TEST_F(DependencyGraphTest, UnblockedOwnersAreQueued) {
  struct Case {
    const char* name;
    std::vector<OwnerReference> after;
    Uids want;
  };
  const Case cases[] = {{"still blocks", {Reference("owner", true)}, {}},
                        {"blocks no more", {Reference("owner", false)}, {"owner"}},
                        {"reference removed", {}, {"owner"}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Observe("owner", {Reference("root")});
    Observe("child", {Reference("owner", true)});
    TakeDeletes();
    Observe("child", c.after);
    EXPECT_EQ(TakeDeletes(), c.want);
    graph_.Deleted(Identity("child"));
    graph_.Deleted(Identity("owner"));
    TakeDeletes();
  }
}

TEST_F(DependencyGraphTest, OrphanFinalizerIsQueuedOnce) {
  Observe("owner", {}, {"orphan"}, true);
  Observe("owner", {}, {"orphan"}, true);
  EXPECT_EQ(orphans_, Uids{"owner"});
  graph_.Deleted(Identity("owner"));
  EXPECT_EQ(graph_.size(), 0u);
}

TEST_F(DependencyGraphTest, ReadAheadOfTheWatchDoesNotOrphan) {
  Observe("first", {Reference("owner")});
  graph_.Confirm(Identity("owner"));  // as read now it has the finalizer orphan; the second child was not told yet
  EXPECT_FALSE(graph_.Find("owner")->is_virtual);
  EXPECT_TRUE(orphans_.empty());
  Observe("second", {Reference("owner")});
  Observe("owner", {}, {"orphan"}, true);
  EXPECT_EQ(orphans_, Uids{"owner"});
  EXPECT_EQ(graph_.Find("owner")->dependents.size(), 2u);
}

TEST_F(DependencyGraphTest, OwnersInOtherNamespacesAreReported) {
  Observe("owner", {Reference("root")}, {}, false, "elsewhere");
  TakeDeletes();
  Observe("child", {Reference("owner")});
  EXPECT_EQ(invalid_, Uids{"child->owner"});
  EXPECT_EQ(TakeDeletes(), Uids{"child"});
  // The other order: the child is there first.
  Observe("child2", {Reference("owner2")});
  TakeDeletes();
  Observe("owner2", {}, {}, false, "elsewhere");
  EXPECT_EQ(invalid_, (Uids{"child->owner", "child2->owner2"}));
  EXPECT_EQ(TakeDeletes(), Uids{"child2"});
}

TEST_F(DependencyGraphTest, DisagreeingDependentsKeepTheVirtualNode) {
  OwnerReference other = Reference("owner");
  other.name = "another-name";
  Observe("a", {Reference("owner")});
  Observe("b", {other});
  TakeDeletes();
  graph_.VirtualDeleted(Identity("owner"));
  EXPECT_EQ(TakeDeletes(), Uids{"a"});  // the dependent of an absent owner
  ASSERT_NE(graph_.Find("owner"), nullptr);
  EXPECT_EQ(graph_.Find("owner")->identity.name, "another-name");
  EXPECT_EQ(later_, Uids{"owner"});
}

TEST_F(DependencyGraphTest, CyclesAndSelfReferencesAreRemoved) {
  Observe("a", {Reference("b", true)});
  Observe("b", {Reference("a", true)});
  Observe("self", {Reference("self", true)});
  EXPECT_EQ(graph_.edges(), 3u);
  Observe("self", {});
  EXPECT_EQ(graph_.Find("self"), nullptr);
  Observe("self", {Reference("self")});
  graph_.Deleted(Identity("self"));
  graph_.Deleted(Identity("a"));
  graph_.Deleted(Identity("b"));
  EXPECT_EQ(graph_.size(), 0u);
}

TEST(AbsentOwners, AbsentOwnerCacheEvictsTheOldest) {
  AbsentOwners owners;
  for (std::size_t i = 0; i <= AbsentOwners::kMax; ++i)
    owners.Add({"v1", "ConfigMap", "ns", "name", std::to_string(i)});
  EXPECT_FALSE(owners.Has({"v1", "ConfigMap", "ns", "name", "0"}));
  EXPECT_TRUE(owners.Has({"v1", "ConfigMap", "ns", "name", "1"}));
}

}  // namespace
}  // namespace keelson::controllers
