// Contract of LIST and WATCH with a shard selector, for every storage.
#include "storage/contract_suite/contract.h"
#include "storage/shard_filter.h"
#include "testing/line_codec.h"

namespace keelson::storage {
namespace {

using meta::ShardSelector;

constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;

SelectionPredicate Half(int half, ShardSelector::Key key = ShardSelector::Key::kUID) {
  ShardSelector selector{.key = key, .ranges = {{half == 0 ? 0 : kHalf, half == 0 ? kHalf - 1 : UINT64_MAX}}};
  SelectionPredicate predicate;
  predicate.shard = std::make_shared<const ShardFilter>(std::move(selector), std::make_shared<testing::LineCodec>());
  return predicate;
}

// FNV-1a hardly moves the high bits of texts that differ at their end only, so UIDs here differ at their beginning.
int HalfOf(const std::string& value) { return meta::ShardHash(value) < kHalf ? 0 : 1; }

TEST_P(Contract, ShardsDivideAList) {
  std::string want[2];
  for (char c = 'a'; c <= 'p'; ++c) {
    const std::string name(1, c);
    MustCreate({.name = name, .uid = name + "-uid"});
    std::string& names = want[HalfOf(name + "-uid")];
    names += (names.empty() ? "" : " ") + name;
  }
  ASSERT_FALSE(want[0].empty() || want[1].empty());
  for (const int half : {0, 1}) EXPECT_EQ(Names(MustList("/pods", {.predicate = Half(half)})), want[half]);
}

TEST_P(Contract, ShardsByNamespace) {
  for (char c = 'a'; c <= 'f'; ++c) MustCreate({.name = "x", .name_space = std::string(1, c)});
  for (const int half : {0, 1}) {
    const ObjectList list = MustList("/pods", {.predicate = Half(half, ShardSelector::Key::kNamespace)});
    for (const ObjectPtr& object : list.items)
      EXPECT_EQ(HalfOf(std::string(object->attributes().name_space)), half) << object->key();
  }
}

TEST_P(Contract, PagesOfAShard) {
  std::string want;
  for (char c = 'a'; c <= 'p'; ++c) {
    const std::string name(1, c);
    MustCreate({.name = name, .uid = name + "-uid"});
    if (HalfOf(name + "-uid") == 0) want += (want.empty() ? "" : " ") + name;
  }
  ListOptions options{.predicate = Half(0)};
  options.predicate.limit = 2;
  std::string names;
  for (int pages = 0; pages < 20; ++pages) {
    const ObjectList page = MustList("/pods", options);
    EXPECT_LE(page.items.size(), 2u);
    if (!page.items.empty()) names += (names.empty() ? "" : " ") + Names(page);
    if (page.continue_token.empty()) break;
    EXPECT_TRUE(page.remaining_item_count.has_value());  // upstream's: of all shards
    options.predicate.continue_token = page.continue_token;
  }
  EXPECT_EQ(names, want);
}

TEST_P(Contract, WatchOfAShard) {
  const ObjectPtr start = MustCreate({.name = "z"});
  std::string in, out;  // uids
  for (int i = 0; in.empty() || out.empty(); ++i) (HalfOf(std::to_string(i)) == 0 ? in : out) = std::to_string(i);
  auto watch =
      MustWatch("/pods", {.resource_version = std::to_string(start->resource_version()), .predicate = Half(0)});
  MustCreate({.name = "a", .uid = out});
  MustUpdate({.name = "a", .data = "2", .uid = out});
  MustDelete({.name = "a"});
  const auto text = [](std::string_view type, const ObjectPtr& object) {
    return std::string(type) + " default/b@" + std::to_string(object->resource_version());
  };
  const std::string added = text("ADDED", MustCreate({.name = "b", .uid = in}));
  const std::string modified = text("MODIFIED", MustUpdate({.name = "b", .data = "2", .uid = in}));
  const std::string deleted = text("DELETED", MustDelete({.name = "b"}));
  for (const std::string& event : {added, modified, deleted}) EXPECT_EQ(watch->NextText(), event);
}

}  // namespace
}  // namespace keelson::storage
