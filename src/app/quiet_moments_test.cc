#include "app/quiet_moments.h"

#include <gtest/gtest.h>

namespace keelson::app {
namespace {

using std::chrono::milliseconds;

TEST(QuietMomentsTest, MemoryIsGivenBackOnceAfterWork) {
  QuietMoments moments(milliseconds(100));
  EXPECT_FALSE(moments.Look(milliseconds(101)));  // Nothing was done yet.
  EXPECT_FALSE(moments.Look(milliseconds(900)));  // It works.
  EXPECT_FALSE(moments.Look(milliseconds(1400)));
  EXPECT_TRUE(moments.Look(milliseconds(1401)));
  EXPECT_FALSE(moments.Look(milliseconds(1402)));
}

TEST(QuietMomentsTest, ALittleWorkAddsUp) {
  QuietMoments moments(milliseconds(0));
  EXPECT_FALSE(moments.Look(milliseconds(150)));
  EXPECT_FALSE(moments.Look(milliseconds(150)));
  EXPECT_FALSE(moments.Look(milliseconds(210)));
  EXPECT_TRUE(moments.Look(milliseconds(210)));
}

}  // namespace
}  // namespace keelson::app
