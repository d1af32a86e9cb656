#include "cacher/label_filter.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace keelson::cacher {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

TEST(LabelFilter, UsesRequirementsWithValuesOnly) {
  struct Case {
    const char* selector;
    bool empty;
  };
  constexpr Case kCases[] = {
      {"", true},    {"a", true},    {"!a", true},    {"a!=b", true},        {"a notin (b)", true},
      {"a>1", true}, {"a=b", false}, {"a==b", false}, {"a in (b,c)", false}, {"a!=b,c=d", false}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.selector);
    EXPECT_EQ(LabelFilter(*meta::LabelSelector::Parse(c.selector)).empty(), c.empty);
  }
}

// No false negatives, and few false positives.
TEST(LabelFilter, HasNoFalseNegativesAndFewFalsePositives) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<std::string> keys, values;
  for (int i = 0; i < 6; ++i) keys.push_back("example.com/key-" + std::to_string(i));
  for (int i = 0; i < 200; ++i) values.push_back("value-" + std::to_string(i));
  int passed = 0, selected = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    Labels labels;
    for (const std::string& key : keys) {
      if (pick(4) != 0) labels.emplace_back(key, values[static_cast<std::size_t>(pick(200))]);
    }
    std::string text = keys[static_cast<std::size_t>(pick(6))];
    const std::string value = values[static_cast<std::size_t>(pick(200))];
    const std::string other = values[static_cast<std::size_t>(pick(200))];
    switch (pick(3)) {
      case 0:
        text += "=" + value;
        break;
      case 1:
        text += " in (" + value + "," + other + ")";
        break;
      default:
        text += "=" + value + "," + keys[static_cast<std::size_t>(pick(6))] + "!=" + other;
    }
    const auto selector = meta::LabelSelector::Parse(text);
    ASSERT_TRUE(selector.ok());
    const bool may = LabelFilter(*selector).MayMatch(LabelBits(labels));
    const bool does = selector->Matches(labels);
    EXPECT_TRUE(may || !does) << text;
    passed += may;
    selected += does;
  }
  EXPECT_LT(passed - selected, kRounds / 15);
}

}  // namespace
}  // namespace keelson::cacher
