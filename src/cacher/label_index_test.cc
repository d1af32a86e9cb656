#include "cacher/label_index.h"

#include <gtest/gtest.h>

#include <string>

#include "cacher/cacher_fixture.h"

namespace keelson::cacher {
namespace {

TEST(LabelDemand, AKeyIsWantedAfterManyLargeLists) {
  LabelDemand demand;
  for (std::uint32_t i = 0; i < 2 * LabelDemand::kListsMin; ++i)
    EXPECT_FALSE(demand.Note("small", LabelDemand::kObjectsMin - 1));
  for (std::uint32_t i = 1; i < LabelDemand::kListsMin; ++i) EXPECT_FALSE(demand.Note("app", LabelDemand::kObjectsMin));
  EXPECT_EQ(demand.size(), 0u);
  EXPECT_TRUE(demand.Note("app", LabelDemand::kObjectsMin));
  ASSERT_EQ(demand.size(), 1u);
  EXPECT_EQ(demand.key(0), "app");
  for (std::uint32_t i = 0; i < 2 * LabelDemand::kListsMin; ++i)
    EXPECT_FALSE(demand.Note("app", LabelDemand::kObjectsMin));
  EXPECT_EQ(demand.size(), 1u);
}

TEST(LabelDemand, KeysAreBounded) {
  LabelDemand demand;
  for (std::size_t key = 0; key < 10 * LabelDemand::kCandidatesMax; ++key)
    demand.Note("rare-" + std::to_string(key), LabelDemand::kObjectsMin);
  EXPECT_EQ(demand.size(), 0u);
  for (std::size_t key = 0; key < 2 * kLabelIndexesMax; ++key) {
    for (std::uint32_t i = 0; i < LabelDemand::kListsMin; ++i)
      demand.Note("often-" + std::to_string(key), LabelDemand::kObjectsMin);
  }
  EXPECT_EQ(demand.size(), kLabelIndexesMax);
}

class LabelIndexTest : public CacherTest {
 protected:
  static constexpr std::uint64_t kObjects = LabelIndexes::kStep + 100;  // more than one step

  static std::string App(int number) { return number % 100 == 7 ? "seldom" : number % 3 == 0 ? "" : "often"; }
  static std::string Name(int number) { return "p" + std::to_string(10000 + number); }
  static std::string Namespace(int number) { return number % 200 == 7 ? "other" : "default"; }

  void Fill() {
    for (int i = 0; i < static_cast<int>(kObjects); ++i)
      Create({.name = Name(i), .name_space = Namespace(i), .app = App(i)});
    Sync();
  }
  storage::ObjectList ListByLabel(const std::string& selector, const std::string& key = "/pods") {
    return List(key, {.resource_version = "0", .predicate = Select(selector, ""), .recursive = true});
  }
  // How many objects a LIST looks at.
  std::uint64_t Fetched(const std::string& selector) {
    const std::uint64_t before = cacher().metrics().list_fetched_objects.load();
    ListByLabel(selector);
    return cacher().metrics().list_fetched_objects.load() - before;
  }
  // Lists until the key has its index.
  void BecomeIndexed() {
    EXPECT_EQ(Fetched("app=seldom"), kObjects);
    PassUntil([&] { return Fetched("app=seldom") < kObjects; });
  }
};

TEST_F(LabelIndexTest, ListsByAnIndexedLabelReadMatchingObjectsOnly) {
  Fill();
  const std::string before = Names(ListByLabel("app=seldom"));
  const std::size_t count = ListByLabel("app=seldom").items.size();
  ASSERT_EQ(count, 42u);
  BecomeIndexed();
  EXPECT_EQ(Fetched("app=seldom"), count);
  EXPECT_EQ(Fetched("app=seldom,app!=x"), count);
  EXPECT_EQ(Fetched("app in (seldom)"), count);
  EXPECT_EQ(Fetched("app in (seldom,other)"), kObjects);  // two values: one by one
  EXPECT_EQ(Fetched("app=never"), 0u);
  EXPECT_EQ(Names(ListByLabel("app=seldom")), before);
  EXPECT_EQ(ListByLabel("app=seldom", "/pods/other").items.size(), 21u);
  EXPECT_EQ(ListByLabel("app=seldom", "/pods/default").items.size(), 21u);
}

TEST_F(LabelIndexTest, IndexesFollowChanges) {
  Fill();
  BecomeIndexed();
  Update({.name = Name(7), .name_space = Namespace(7), .app = "often"});
  Update({.name = Name(107), .name_space = Namespace(107), .app = ""});
  Update({.name = Name(207), .name_space = Namespace(207), .app = "seldom", .data = "new"});
  Delete(Name(307), Namespace(307));
  Update({.name = Name(9), .app = "seldom"});
  Create({.name = "zzz", .app = "seldom"});
  Sync();
  const storage::ObjectList list = ListByLabel("app=seldom");
  EXPECT_EQ(list.items.size(), 42u - 3 + 2);
  for (const auto& object : list.items) {
    EXPECT_NE(object->attributes().name, Name(7));
    EXPECT_NE(object->attributes().name, Name(107));
    EXPECT_NE(object->attributes().name, Name(307));
  }
  // In the order of the keys, and the objects as they are now.
  for (std::size_t i = 1; i < list.items.size(); ++i) EXPECT_LT(list.items[i - 1]->key(), list.items[i]->key());
  EXPECT_EQ(Fetched("app=seldom"), list.items.size());
}

TEST_F(LabelIndexTest, PagesContinueBehindAnIndexedOne) {
  Fill();
  BecomeIndexed();
  std::string names, token;
  std::size_t pages = 0;
  do {
    storage::ListOptions options{.predicate = Select("app=seldom", ""), .recursive = true};
    options.predicate.limit = 10;
    options.predicate.continue_token = token;
    const storage::ObjectList page = List("/pods", options);
    names += (names.empty() ? "" : " ") + Names(page);
    token = page.continue_token;
    ++pages;
  } while (!token.empty() && pages < 20);
  EXPECT_EQ(names, Names(ListByLabel("app=seldom")));
  EXPECT_EQ(pages, 5u);
}

}  // namespace
}  // namespace keelson::cacher
