#include "meta/shard_selector.h"

#include <gtest/gtest.h>

namespace keelson::meta {
namespace {

TEST(ShardSelector, HashIsFNV1a) {
  EXPECT_EQ(ShardHash(""), 0xcbf29ce484222325);
  EXPECT_EQ(ShardHash("a"), 0xaf63dc4c8601ec8c);
  EXPECT_EQ(ShardHash("foobar"), 0x85944171f73967e8);
}

TEST(ShardSelector, RangesAreHalfOpen) {
  const std::uint64_t hash = ShardHash("foobar");
  const auto matches = [&](std::uint64_t first, std::uint64_t last) {
    return ShardSelector{.ranges = {{first, last}}}.Matches("foobar");
  };
  EXPECT_TRUE(matches(hash, hash));
  EXPECT_TRUE(matches(0, UINT64_MAX));
  EXPECT_FALSE(matches(hash + 1, UINT64_MAX));
  EXPECT_FALSE(matches(0, hash - 1));
  const ShardSelector two{.ranges = {{0, hash - 1}, {hash, hash + 1}}};
  EXPECT_TRUE(two.Matches("foobar"));
}

TEST(ShardSelector, ToString) {
  const ShardSelector selector{.key = ShardSelector::Key::kNamespace, .ranges = {{0, 0xfe}, {0xff, UINT64_MAX}}};
  EXPECT_EQ(selector.ToString(),
            "shardRange(object.metadata.namespace, '0x0000000000000000', '0x00000000000000ff') || "
            "shardRange(object.metadata.namespace, '0x00000000000000ff', '0x10000000000000000')");
}

}  // namespace
}  // namespace keelson::meta
