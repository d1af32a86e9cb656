#include "kv/mvcc/range_tree.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "base/testing/seeded_random.h"
#include "kv/kv.h"

namespace keelson::kv::mvcc {
namespace {

using Range = std::pair<std::string, std::string>;

TEST(RangeTree, FindsTheRangesOfAKey) {
  const char* seed_text = std::getenv("KEELSON_SEED");
  const std::uint64_t seed = seed_text != nullptr ? std::strtoull(seed_text, nullptr, 10) : base::Random::Real().Next();
  SCOPED_TRACE("KEELSON_SEED=" + std::to_string(seed));
  const auto random = base::Seeded(seed);
  const auto text = [&] {
    std::string key;
    for (std::uint64_t i = random->Below(4); i <= 3; ++i) key += static_cast<char>('a' + random->Below(3));
    return key;
  };
  const auto range = [&]() -> Range {
    const std::string begin = text();
    switch (random->Below(5)) {
      case 0:
        return {begin, ""};
      case 1:
        return {begin, std::string(1, '\0')};
      case 2:
        return {begin, PrefixEnd(begin)};
      default:
        return {begin, text()};  // may be empty
    }
  };
  RangeTree<Range> tree;
  std::map<Range, RangeTree<Range>::Node*> model;
  for (int step = 0; step < 5000; ++step) {
    if (model.size() < 40 || random->Below(2) == 0) {
      const Range added = range();
      auto& node = tree.At(added.first, added.second);
      node.value = added;
      const auto [at, made] = model.emplace(added, &node);
      ASSERT_EQ(at->second, &node) << "the same range is the same node";
    } else {
      auto gone = std::next(model.begin(), static_cast<std::ptrdiff_t>(random->Below(model.size())));
      tree.Erase(*gone->second);
      model.erase(gone);
    }
    ASSERT_EQ(tree.size(), model.size());
    const std::string key = text();
    std::set<Range> want;
    for (const auto& [one, node] : model) {
      if (InRange(key, one.first, one.second)) want.insert(one);
    }
    std::set<Range> found;
    tree.ForEachContaining(key, [&](const Range& one) { EXPECT_TRUE(found.insert(one).second); });
    ASSERT_EQ(found, want) << key;
  }
  std::size_t all = 0;
  tree.ForEach([&](const Range& one) { all += model.contains(one); });
  EXPECT_EQ(all, model.size());
}

}  // namespace
}  // namespace keelson::kv::mvcc
