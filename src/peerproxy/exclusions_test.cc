#include "peerproxy/exclusions.h"

#include <gtest/gtest.h>

namespace keelson::peerproxy {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(Exclusions, AGroupVersionStaysExcludedForTheGracePeriod) {
  const Exclusions::Time start{std::chrono::hours(1)};
  Exclusions exclusions;
  EXPECT_TRUE(exclusions.Set("crd/a", {{"g", "v1"}}, start));
  EXPECT_TRUE(exclusions.Contains("g", "v1"));
  EXPECT_FALSE(exclusions.Contains("g", "v2"));
  EXPECT_EQ(exclusions.NextExpiry(), std::nullopt);

  EXPECT_TRUE(exclusions.Set("crd/a", {}, start));
  EXPECT_TRUE(exclusions.Contains("g", "v1"));
  EXPECT_EQ(exclusions.NextExpiry(), start + minutes(5));
  EXPECT_FALSE(exclusions.Expire(start + minutes(5) - seconds(1)));
  EXPECT_TRUE(exclusions.Expire(start + minutes(5)));
  EXPECT_FALSE(exclusions.Contains("g", "v1"));
}

TEST(Exclusions, ObjectsShareAGroupVersion) {
  const Exclusions::Time start{std::chrono::hours(1)};
  Exclusions exclusions;
  EXPECT_TRUE(exclusions.Set("crd/a", {{"g", "v1"}}, start));
  EXPECT_FALSE(exclusions.Set("crd/b", {{"g", "v1"}}, start));
  EXPECT_FALSE(exclusions.Set("crd/a", {}, start));
  EXPECT_EQ(exclusions.NextExpiry(), std::nullopt);
  EXPECT_FALSE(exclusions.Set("crd/b", {{"g", "v1"}}, start));  // an update that changes nothing
  EXPECT_TRUE(exclusions.Set("crd/b", {{"g", "v2"}}, start));
  EXPECT_TRUE(exclusions.Contains("g", "v1"));
  EXPECT_TRUE(exclusions.Contains("g", "v2"));
}

TEST(Exclusions, TheRecentlyDeletedAreBounded) {
  const Exclusions::Time start{std::chrono::hours(1)};
  Exclusions exclusions;
  for (std::size_t i = 0; i <= Exclusions::kRecentlyDeletedMax; ++i) {
    exclusions.Set("crd", {{"g" + std::to_string(i), "v1"}}, start + seconds(i == 0 ? 0 : 1));
    exclusions.Set("crd", {}, start + seconds(i == 0 ? 0 : 1));
  }
  EXPECT_FALSE(exclusions.Contains("g0", "v1"));
  EXPECT_TRUE(exclusions.Contains("g1", "v1"));
}

}  // namespace
}  // namespace keelson::peerproxy
