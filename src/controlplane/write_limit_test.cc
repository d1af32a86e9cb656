#include "controlplane/write_limit.h"

#include <gtest/gtest.h>

namespace keelson::controlplane {
namespace {

using base::Clock;
using std::chrono::seconds;

TEST(WriteLimit, SixWritesOfAnObjectInAMinute) {
  WriteLimit limit;
  const Clock::SteadyTime start(seconds(1000));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(limit.Take("a", start + seconds(i))) << i;
  EXPECT_FALSE(limit.Take("a", start + seconds(6)));
  EXPECT_TRUE(limit.Take("b", start + seconds(6))) << "objects are counted apart";
  EXPECT_FALSE(limit.Take("a", start + seconds(60)));
  EXPECT_TRUE(limit.Take("a", start + seconds(61))) << "the first write is over a minute old";
  EXPECT_FALSE(limit.Take("a", start + seconds(61)));
  limit.Forget("a");
  EXPECT_TRUE(limit.Take("a", start + seconds(61)));
}

}  // namespace
}  // namespace keelson::controlplane
