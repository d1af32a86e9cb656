#include "flowcontrol/timing_ratio.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/fake_clock.h"

namespace keelson::flowcontrol {
namespace {

using namespace std::chrono_literals;

class TimingRatioTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  telemetry::MetricsRegistry registry_;
  telemetry::Histogram& histogram_ = registry_.NewHistogram({.name = "ratio", .help = "h", .buckets = {0, 0.5, 1}});
};

TEST_F(TimingRatioTest, CountsNanosecondsByRatio) {
  TimingRatio ratio(histogram_, clock_.Monotonic());
  ratio.SetDenominator(clock_.Monotonic(), 4);
  clock_.Advance(3ms);
  ratio.Set(clock_.Monotonic(), 2);  // 3 ms of 0
  clock_.Advance(5ms);
  ratio.Set(clock_.Monotonic(), 8);  // 5 ms of 0.5
  clock_.Advance(7ms);
  ratio.Flush(clock_.Monotonic());  // 7 ms of 2
  EXPECT_EQ(histogram_.Buckets(), (std::vector<std::uint64_t>{3'000'000, 8'000'000, 8'000'000, 15'000'000}));
  EXPECT_DOUBLE_EQ(histogram_.sum(), 5e6 * 0.5 + 7e6 * 2);
}

TEST_F(TimingRatioTest, NewDenominatorCountsFromNowOn) {
  TimingRatio ratio(histogram_, clock_.Monotonic());
  ratio.Set(clock_.Monotonic(), 1);
  clock_.Advance(1ms);
  ratio.SetDenominator(clock_.Monotonic(), 2);  // 1 ms of 1
  clock_.Advance(1ms);
  ratio.Flush(clock_.Monotonic());  // 1 ms of 0.5
  EXPECT_EQ(histogram_.Buckets(), (std::vector<std::uint64_t>{0, 1'000'000, 2'000'000, 2'000'000}));
}

TEST_F(TimingRatioTest, LargeNumeratorsAreBounded) {
  TimingRatio ratio(histogram_, clock_.Monotonic());
  ratio.Set(clock_.Monotonic(), 1'000'000);
  clock_.Advance(1us);
  ratio.Flush(clock_.Monotonic());
  EXPECT_DOUBLE_EQ(histogram_.sum(), 1000.0 * TimingRatio::kNumeratorMax);
}

TEST_F(TimingRatioTest, ClockReadBeforeTheLastChangeCountsNothing) {
  TimingRatio ratio(histogram_, clock_.Monotonic());
  const auto before = clock_.Monotonic();
  clock_.Advance(1ms);
  ratio.Set(clock_.Monotonic(), 1);
  ratio.Set(before, 2);
  EXPECT_EQ(histogram_.count(), 1'000'000u);
}

TEST_F(TimingRatioTest, CountsThingsThatComeAndGo) {
  CountedTimingRatio ratio(histogram_, clock_.Monotonic());
  ratio.Add(clock_.Monotonic(), 1);
  clock_.Advance(2ms);
  ratio.Add(clock_.Monotonic(), -1);
  clock_.Advance(1ms);
  ratio.ratio().Flush(clock_.Monotonic());
  EXPECT_EQ(histogram_.Buckets(), (std::vector<std::uint64_t>{1'000'000, 1'000'000, 3'000'000, 3'000'000}));
}

}  // namespace
}  // namespace keelson::flowcontrol
