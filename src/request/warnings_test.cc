#include "request/warnings.h"

#include <gtest/gtest.h>

namespace keelson::request {
namespace {

TEST(Warnings, EscapesAndDropsRepeats) {
  Warnings warnings;
  warnings.Add("a \"b\" \\");
  warnings.Add("a \"b\" \\");
  warnings.Add("");
  warnings.Add("line\nbreak");
  warnings.Add("\xff");
  EXPECT_EQ(warnings.HeaderValues(), std::vector<std::string>{R"(299 - "a \"b\" \\")"});
}

TEST(Warnings, CutsOverBudget) {
  Warnings warnings;
  for (int i = 0; i < 30; ++i) warnings.Add(std::to_string(i) + std::string(1000, 'x'));
  std::size_t total = 0;
  for (const auto& value : warnings.HeaderValues()) {
    EXPECT_LE(value.size(), Warnings::kTruncatedRunes + 8);
    total += value.size() - 8;
  }
  EXPECT_LE(total, Warnings::kRunesMax + Warnings::kTruncatedRunes);
}

}  // namespace
}  // namespace keelson::request
