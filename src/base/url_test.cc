#include "base/url.h"

#include <gtest/gtest.h>

namespace keelson::base {
namespace {

TEST(URL, Queries) {
  const Query query("a=1&b=x%20y+z&a=2&bad=%zz&semi;colon=1&empty&=noname");
  EXPECT_EQ(query.Get("a"), "1");
  EXPECT_EQ(query.Values("a").size(), 2u);
  EXPECT_EQ(query.Get("b"), "x y z");
  EXPECT_FALSE(query.Has("bad"));
  EXPECT_TRUE(query.Has("empty"));
  EXPECT_EQ(query.Get("empty"), "");
}

TEST(URL, Escapes) {
  EXPECT_EQ(QueryEscape("a b/c&d"), "a+b%2Fc%26d");
  EXPECT_EQ(PathEscape("a b/c"), "a%20b%2Fc");
  EXPECT_EQ(PathUnescape("a%2Fb+c"), "a/b+c");
  EXPECT_FALSE(PathUnescape("a%2"));
}

}  // namespace
}  // namespace keelson::base
