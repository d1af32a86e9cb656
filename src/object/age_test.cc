#include "object/age.h"

#include <gtest/gtest.h>

namespace keelson::object {
namespace {

class FixedClock : public base::Clock {
 public:
  explicit FixedClock(std::int64_t seconds) : now_(std::chrono::seconds(seconds)) {}
  SystemTime Now() const override { return now_; }
  SteadyTime Monotonic() const override { return {}; }

 private:
  SystemTime now_;
};

TEST(Age, HumanDuration) {
  struct Case {
    std::int64_t seconds;
    const char* want;
  };
  constexpr Case kCases[] = {
      {-2, "<invalid>"},
      {-1, "0s"},
      {0, "0s"},
      {119, "119s"},
      {120, "2m"},
      {125, "2m5s"},
      {600, "10m"},
      {3 * 3600 - 1, "179m"},
      {3 * 3600, "3h"},
      {3 * 3600 + 60, "3h1m"},
      {8 * 3600, "8h"},
      {47 * 3600, "47h"},
      {48 * 3600, "2d"},
      {49 * 3600, "2d1h"},
      {8 * 86400, "8d"},
      {729LL * 86400, "729d"},
      {731LL * 86400, "2y1d"},
      {9LL * 365 * 86400, "9y"},
  };
  for (const Case& c : kCases) EXPECT_EQ(HumanDuration(std::chrono::seconds(c.seconds)), c.want) << c.seconds;
}

TEST(Age, MarksAreFilledWithTheAgeOfTheMoment) {
  const FixedClock made(1'000);
  const AgeTemplate marks(made);
  const std::string row =
      "[\"web\",\"" + Age(marks, {900, 0}) + "\",\"1 (" + Age(marks, {940, 500'000'000}) + " ago)\"]";
  EXPECT_FALSE(marks.read());
  std::string out = "x";
  AgeTemplate::Fill(row, FixedClock(1'000), out);
  EXPECT_EQ(out, R"x(x["web","100s","1 (59s ago)"])x");
  out.clear();
  AgeTemplate::Fill(row, FixedClock(900 + 86'400 * 3), out);
  EXPECT_EQ(out, R"x(["web","3d","1 (2d23h ago)"])x");
  out.clear();
  AgeTemplate::Fill(row, FixedClock(100), out);
  EXPECT_EQ(out, R"x(["web","\u003cinvalid\u003e","1 (\u003cinvalid\u003e ago)"])x");
}

TEST(Age, TimesBeforeTheEpochAndFarAway) {
  const FixedClock now(1'700'000'000);
  const AgeTemplate marks(now);
  for (const Time time : {Time{-5, 0}, Time{Time::kZeroSeconds + 1, 999'999'999}, Time{253'402'300'799, 0}}) {
    std::string out;
    AgeTemplate::Fill(Age(marks, time), now, out);
    const std::string direct = Age(now, time);
    EXPECT_EQ(out, direct == "<invalid>" ? "\\u003cinvalid\\u003e" : direct) << time.seconds;
  }
}

TEST(Age, TemplateReportsThatItsTimeWasRead) {
  const FixedClock now(5);
  const AgeTemplate marks(now);
  EXPECT_EQ(marks.Now(), now.Now());
  EXPECT_TRUE(marks.read());
}

}  // namespace
}  // namespace keelson::object
