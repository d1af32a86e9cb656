#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>

#include "base/colliding_keys_test.h"

namespace keelson::base {
namespace {

TEST(SeededHash, KeysThatCollideInTheLibrarysHashDoNotCollide) {
  const auto keys = CollidingKeys(1024);
  ASSERT_EQ(std::set(keys.begin(), keys.end()).size(), keys.size());
  std::set<std::size_t> library;
  std::set<std::uint64_t> seeded;
  for (const std::string& key : keys) {
    library.insert(std::hash<std::string_view>()(key));
    seeded.insert(SeededHash(key));
  }
  EXPECT_EQ(library.size(), 1u);  // or the keys no longer test anything
  EXPECT_EQ(seeded.size(), keys.size());
}

TEST(SeededHash, EveryByteAndTheLengthCount) {
  std::set<std::uint64_t> seen;
  std::size_t count = 0;
  for (std::size_t size = 0; size < 40; ++size) {
    std::string text(size, '\0');
    seen.insert(SeededHash(text));
    ++count;
    for (std::size_t i = 0; i < size; ++i, ++count) {
      text[i] = 'x';
      seen.insert(SeededHash(text));
      text[i] = '\0';
    }
  }
  EXPECT_EQ(seen.size(), count);
  EXPECT_EQ(SeededHash("same"), SeededHash(std::string("same")));
}

TEST(SeededHash, MapsTakeViews) {
  StringMap<int> map{{"a", 1}};
  EXPECT_EQ(map.find(std::string_view("a"))->second, 1);
  EXPECT_FALSE(map.contains(std::string_view("b")));
}

}  // namespace
}  // namespace keelson::base
