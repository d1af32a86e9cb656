#include "app/commands/progress.h"

#include <gtest/gtest.h>

namespace keelson::app {
namespace {

using std::chrono::duration;

TEST(Progress, Bytes) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(999), "999 B");
  EXPECT_EQ(HumanBytes(12'345), "12.3 kB");
  EXPECT_EQ(HumanBytes(999'960), "1.0 MB");
  EXPECT_EQ(HumanBytes(3'000'000'000'000), "3.0 TB");
}

TEST(Progress, Text) {
  struct Case {
    std::uint64_t done, total;
    double seconds;
    const char* want;
  };
  constexpr Case kCases[] = {
      {0, 100, 0, "copying  [>                   ]   0%  0 of 100"},
      {50, 100, 10, "copying  [==========>         ]  50%  50 of 100, 5/s, 10 s left"},
      {100, 100, 10, "copying  [====================] 100%  100 of 100, 10/s"},
      {7, 0, 0.1, "copying  7"},
      {1, 10'001, 1, "copying  [>                   ]   0%  1 of 10001, 1/s, 2.8 h left"},
      {120, 100, 10, "copying  [====================] 100%  120 of 100, 12/s"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(ProgressText("copying", ProgressUnit::kItems, c.done, c.total, duration<double>(c.seconds)), c.want);
  }
}

TEST(Progress, NothingIsDrawnForShortWork) {
  std::FILE* const file = std::tmpfile();
  {
    Progress progress("x", ProgressUnit::kItems, file);
    progress.Set(1, 2);
  }
  EXPECT_EQ(std::ftell(file), 0);
  std::fclose(file);
}

}  // namespace
}  // namespace keelson::app
