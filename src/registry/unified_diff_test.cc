#include "registry/unified_diff.h"

#include <gtest/gtest.h>

namespace keelson::registry {
namespace {

TEST(UnifiedDiff, ContextAndRanges) {
  EXPECT_EQ(UnifiedDiff("a\nb", "a\nb"), "");
  EXPECT_EQ(UnifiedDiff("1\n2\n3\n4\n5\n6\n7", "1\n2\n3\nx\n5\n6\n7"),
            "@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-4\n+x\n 5\n 6\n 7\n");
  EXPECT_EQ(UnifiedDiff("a", "b"), "@@ -1 +1 @@\n-a\n+b\n");
}

TEST(UnifiedDiff, DistantChangesAreSeparateHunks) {
  std::string from, to;
  for (int i = 0; i < 30; ++i) {
    from += std::to_string(i) + "\n";
    to += (i == 2 || i == 25 ? "x" : std::to_string(i)) + "\n";
  }
  const std::string diff = UnifiedDiff(from, to);
  EXPECT_EQ(diff.substr(0, 16), "@@ -1,6 +1,6 @@\n");
  EXPECT_NE(diff.find("@@ -23,7 +23,7 @@\n"), std::string::npos) << diff;
}

}  // namespace
}  // namespace keelson::registry
