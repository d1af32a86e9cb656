#include "base/btree.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/ref.h"
#include "base/testing/seeded_random.h"

namespace keelson::base {

// Aborts when a tree breaks its own promises: order, fill, sizes, depth.
struct BTreeInvariants {
  template <class Key, class T>
  static void Check(const T& tree) {
    if (tree.root_ != nullptr) CheckNode<Key, T>(tree.root_, true);
  }

  template <class Key, class T>
  static std::uint32_t CheckNode(const typename T::Node* node, bool root) {
    KS_CHECK(node->count <= T::kItemsMax && (root || node->count >= T::kItemsMin) && node->count > 0);
    for (std::uint32_t i = 1; i < node->count; ++i) KS_CHECK(Key()(node->items[i - 1]) < Key()(node->items[i]));
    if (node->leaf) {
      KS_CHECK(node->size == node->count);
      return 1;
    }
    std::uint64_t size = node->count;
    std::uint32_t depth = 0;
    for (std::uint32_t i = 0; i <= node->count; ++i) {
      const auto* child = node->inner()->children[i];
      const std::uint32_t below = CheckNode<Key, T>(child, false);
      KS_CHECK(i == 0 || below == depth);
      depth = below;
      size += child->size;
      if (i < node->count) KS_CHECK(Key()(child->items[child->count - 1]) < Key()(node->items[i]));
      if (i > 0) KS_CHECK(Key()(node->items[i - 1]) < Key()(child->items[0]));
    }
    KS_CHECK(size == node->size);
    return depth + 1;
  }
};

namespace {

struct Entry : RefCounted {
  Entry(std::string key_in, int value_in) : key(std::move(key_in)), value(value_in) {}
  std::string key;
  int value;
};
struct KeyOfEntry {
  std::string_view operator()(const Ref<Entry>& entry) const { return entry->key; }
};
using Tree = BTree<Ref<Entry>, KeyOfEntry>;
using Model = std::map<std::string, int, std::less<>>;

void ExpectSame(const Tree& tree, const Model& model) {
  BTreeInvariants::Check<KeyOfEntry>(tree);
  ASSERT_EQ(tree.size(), model.size());
  auto at = tree.begin();
  for (const auto& [key, value] : model) {
    ASSERT_TRUE(at.valid());
    ASSERT_EQ((*at)->key, key);
    ASSERT_EQ((*at)->value, value);
    at.Next();
  }
  ASSERT_FALSE(at.valid());
}

void ExpectSameFrom(const Tree& tree, const Model& model, const std::string& key) {
  auto at = tree.Seek(key);
  std::size_t rank = model.size();
  for (auto want = model.lower_bound(key); want != model.end(); ++want, at.Next()) {
    --rank;
    ASSERT_TRUE(at.valid());
    ASSERT_EQ((*at)->key, want->first);
  }
  ASSERT_FALSE(at.valid());
  ASSERT_EQ(tree.Rank(key), rank);
}

std::string KeyFor(std::uint64_t number) {
  return "/pods/ns" + std::to_string(number % 7) + "/pod-" + std::to_string(number);
}

TEST(BTree, EmptyTree) {
  Tree tree;
  EXPECT_EQ(tree.size(), 0u);
  EXPECT_FALSE(tree.begin().valid());
  EXPECT_FALSE(tree.Seek("x").valid());
  EXPECT_EQ(tree.Find("x"), nullptr);
  EXPECT_FALSE(tree.Erase("x"));
  EXPECT_EQ(tree.Rank("x"), 0u);
}

// Random puts and erasures agree with std::map, and snapshots taken on the way stay what they were.
TEST(BTree, AgreesWithMapAndSnapshotsStay) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    auto random = Seeded(seed);
    Tree tree;
    Model model;
    std::vector<std::pair<Tree, Model>> snapshots;
    const std::uint64_t keys = seed % 2 == 0 ? 300 : 3000;
    for (int step = 0; step < 6000; ++step) {
      const std::string key = KeyFor(random->Below(keys));
      // Phases of growth and of shrinking, so that both splitting and merging happen at every depth.
      const bool put = random->Below(100) < ((step / 1500) % 2 == 0 ? 80u : 20u);
      if (put) {
        const bool fresh = tree.Put(MakeRef<Entry>(key, step));
        ASSERT_EQ(fresh, !model.contains(key));
        model[key] = step;
      } else {
        ASSERT_EQ(tree.Erase(key), model.erase(key) == 1);
      }
      if (step % 500 == 0) snapshots.emplace_back(tree, model);
      if (step % 100 == 0) {
        ExpectSame(tree, model);
        ExpectSameFrom(tree, model, KeyFor(random->Below(keys)));
        ExpectSameFrom(tree, model, "/pods/ns3/");
      }
      const std::string asked = KeyFor(random->Below(keys));
      const auto* found = tree.Find(asked);
      const auto want = model.find(asked);
      ASSERT_EQ(found != nullptr, want != model.end());
      if (found != nullptr) ASSERT_EQ((*found)->value, want->second);
    }
    for (const auto& [snapshot, then] : snapshots) ExpectSame(snapshot, then);
    while (!model.empty()) {
      ASSERT_TRUE(tree.Erase(model.begin()->first));
      model.erase(model.begin());
    }
    ExpectSame(tree, model);
  }
}

// Erasing by a view into the very item that goes.
TEST(BTree, EraseByOwnKey) {
  Tree tree;
  for (std::uint64_t i = 0; i < 500; ++i) tree.Put(MakeRef<Entry>(KeyFor(i), 0));
  while (!tree.empty()) ASSERT_TRUE(tree.Erase((*tree.begin())->key));
}

TEST(BTree, ReadersOnOtherThreadsSeeTheirSnapshot) {
  Tree tree;
  for (std::uint64_t i = 0; i < 2000; ++i) tree.Put(MakeRef<Entry>(KeyFor(i), 0));
  std::vector<std::thread> readers;
  for (int round = 0; round < 8; ++round) {
    readers.emplace_back([snapshot = tree] {
      for (int pass = 0; pass < 20; ++pass) {
        std::size_t count = 0;
        for (auto at = snapshot.begin(); at.valid(); at.Next()) count += (*at)->key.empty() ? 0 : 1;
        ASSERT_EQ(count, snapshot.size());
        const Tree copy = snapshot;
        ASSERT_EQ(copy.size(), snapshot.size());
      }
    });
    for (std::uint64_t i = 0; i < 300; ++i) {
      tree.Put(MakeRef<Entry>(KeyFor(i * 5), round));
      tree.Erase(KeyFor(i * 7 + static_cast<std::uint64_t>(round)));
    }
  }
  for (auto& reader : readers) reader.join();
  BTreeInvariants::Check<KeyOfEntry>(tree);
}

}  // namespace
}  // namespace keelson::base
