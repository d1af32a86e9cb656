#include "base/duration.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace keelson::base {
namespace {

TEST(Duration, FormatsAsGo) {
  struct Case {
    std::int64_t nanoseconds;
    const char* want;
  };
  constexpr Case kCases[] = {
      {0, "0s"},
      {1, "1ns"},
      {1'100, "1.1µs"},
      {2'200'000, "2.2ms"},
      {3'300'000'000, "3.3s"},
      {60'000'000'000, "1m0s"},
      {245'000'000'000, "4m5s"},
      {245'001'000'000, "4m5.001s"},
      {18'367'001'000'000, "5h6m7.001s"},
      {480'000'000'001, "8m0.000000001s"},
      {-1'500'000'000, "-1.5s"},
      {INT64_MAX, "2562047h47m16.854775807s"},
      {INT64_MIN, "-2562047h47m16.854775808s"},
  };
  for (const Case& c : kCases) EXPECT_EQ(FormatDuration(std::chrono::nanoseconds{c.nanoseconds}), c.want);
}

TEST(Duration, ParsesAsGo) {
  struct Case {
    const char* text;
    std::int64_t want;
  };
  constexpr Case kCases[] = {
      {"0", 0},
      {"5s", 5'000'000'000},
      {"-5s", -5'000'000'000},
      {"+5s", 5'000'000'000},
      {"5.", -1},
      {".5s", 500'000'000},
      {"1.004s", 1'004'000'000},
      {"3h30m", 12'600'000'000'000},
      {"10.5s4m", 250'500'000'000},
      {"12µs", 12'000},
      {"12μs", 12'000},
      {"1h2m3s4ms5us6ns", 3'723'004'005'006},
      {"0.3333333333333333333h", 1'200'000'000'000},
      {"9223372036854775807ns", INT64_MAX},
      {"-9223372036854775808ns", INT64_MIN},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    auto got = ParseDuration(c.text);
    if (c.want == -1) {
      EXPECT_FALSE(got);
    } else {
      ASSERT_TRUE(got);
      EXPECT_EQ(got->count(), c.want);
    }
  }
  for (const char* bad :
       {"", "3", "-", "s", ".", "-.", ".s", "+.s", "1d", "3000000h", "9223372036854775808ns", "1 s"}) {
    EXPECT_FALSE(ParseDuration(bad)) << bad;
  }
  std::string error;
  EXPECT_FALSE(ParseDuration("5", &error));
  EXPECT_EQ(error, "time: missing unit in duration \"5\"");
  EXPECT_FALSE(ParseDuration("5d", &error));
  EXPECT_EQ(error, "time: unknown unit \"d\" in duration \"5d\"");
  EXPECT_FALSE(ParseDuration("x", &error));
  EXPECT_EQ(error, "time: invalid duration \"x\"");
}

}  // namespace
}  // namespace keelson::base
