#include "app/quiet_moments.h"

#include <gtest/gtest.h>

namespace keelson::app {
namespace {

using std::chrono::milliseconds;

TEST(QuietMomentsTest, MemoryIsGivenBackOnceAfterTheStart) {
  QuietMoments moments(milliseconds(100));
  EXPECT_FALSE(moments.Look(milliseconds(200)));  // The start goes on.
  EXPECT_TRUE(moments.Look(milliseconds(201)));
  EXPECT_FALSE(moments.Look(milliseconds(202)));
}

TEST(QuietMomentsTest, MemoryIsGivenBackOnceAfterWork) {
  QuietMoments moments(milliseconds(100));
  EXPECT_TRUE(moments.Look(milliseconds(101)));
  EXPECT_FALSE(moments.Look(milliseconds(900)));  // It works.
  EXPECT_FALSE(moments.Look(milliseconds(1400)));
  EXPECT_TRUE(moments.Look(milliseconds(1401)));
  EXPECT_FALSE(moments.Look(milliseconds(1402)));
}

TEST(QuietMomentsTest, ALittleWorkAddsUp) {
  QuietMoments moments(milliseconds(0));
  EXPECT_TRUE(moments.Look(milliseconds(0)));
  EXPECT_FALSE(moments.Look(milliseconds(30)));
  EXPECT_FALSE(moments.Look(milliseconds(30)));
  EXPECT_FALSE(moments.Look(milliseconds(60)));
  EXPECT_TRUE(moments.Look(milliseconds(60)));
}

}  // namespace
}  // namespace keelson::app
