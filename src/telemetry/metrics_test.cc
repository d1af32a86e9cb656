#include "telemetry/metrics.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace keelson::telemetry {
namespace {

TEST(Metrics, TextFormat) {
  MetricsRegistry metrics;
  auto& requests = metrics.Counters(
      {.name = "requests_total", .help = "Requests.", .stability = Stability::kStable, .labels = {"verb", "code"}});
  requests.With({"GET", "200"}).Add(3);
  requests.With({"GET", "200"}).Inc();
  requests.With({"A\"\\\n", "404"}).Inc();
  metrics.NewGauge({.name = "depth", .help = "How deep.\nReally \\."}).Set(1'234'567);
  auto& seconds = metrics.NewHistogram(
      {.name = "seconds", .help = "Time.", .stability = Stability::kAlpha, .buckets = {0.1, 1, 2.5}});
  for (const double value : {0.05, 0.1, 0.5, 3.0}) seconds.Observe(value);
  metrics.Counters({.name = "unused_total", .help = "No series, no lines.", .labels = {"x"}});
  metrics.AddCollector([](Exposition& out) {
    const MetricOptions family{
        .name = "build_info", .help = "Build.", .stability = Stability::kBeta, .labels = {"version"}};
    out.Write(family, MetricType::kGauge, {"1.0"}, 1);
    out.Write(family, MetricType::kGauge, {"2.0"}, 0);
  });
  EXPECT_EQ(metrics.Expose(), R"(# HELP build_info [BETA] Build.
# TYPE build_info gauge
build_info{version="1.0"} 1
build_info{version="2.0"} 0
# HELP depth How deep.\nReally \\.
# TYPE depth gauge
depth 1.234567e+06
# HELP requests_total [STABLE] Requests.
# TYPE requests_total counter
requests_total{code="404",verb="A\"\\\n"} 1
requests_total{code="200",verb="GET"} 4
# HELP seconds [ALPHA] Time.
# TYPE seconds histogram
seconds_bucket{le="0.1"} 2
seconds_bucket{le="1"} 3
seconds_bucket{le="2.5"} 3
seconds_bucket{le="+Inf"} 4
seconds_sum 3.65
seconds_count 4
)");
}

TEST(Metrics, SameNameIsTheSameFamily) {
  MetricsRegistry metrics;
  const MetricOptions options{.name = "a_total", .help = "A.", .labels = {"x"}};
  EXPECT_EQ(&metrics.Counters(options), &metrics.Counters(options));
}

TEST(Metrics, DisabledFamiliesStillCountButAreNotShown) {
  MetricsRegistry metrics;
  metrics.Disable("a_total");
  metrics.NewCounter({.name = "a_total", .help = "A."}).Inc();
  EXPECT_EQ(metrics.Expose(), "");
}

TEST(Metrics, AllowedLabelValues) {
  MetricsRegistry metrics;
  metrics.AllowLabelValues("a_total", "x", {"1", "2"});
  auto& family = metrics.Counters({.name = "a_total", .help = "A.", .labels = {"x", "y"}});
  family.With({"1", "free"}).Inc();
  family.With({"3", "free"}).Inc();
  family.With({"4", "free"}).Inc();
  EXPECT_EQ(family.With({"unexpected", "free"}).value(), 2u);
  EXPECT_EQ(family.series_count(), 2u);
}

TEST(Metrics, SeriesAreBounded) {
  MetricsRegistry metrics;
  auto& family = metrics.Counters({.name = "a_total", .help = "A.", .labels = {"x"}});
  for (std::size_t i = 0; i < Family::kSeriesMax + 100; ++i) family.With({std::to_string(i)}).Inc();
  EXPECT_EQ(family.series_count(), Family::kSeriesMax + 1);
  EXPECT_EQ(family.With({"unexpected"}).value(), 100u);
  EXPECT_EQ(family.With({"7"}).value(), 1u);
}

TEST(Metrics, LabelValuesAreCut) {
  MetricsRegistry metrics;
  auto& family = metrics.Counters({.name = "a_total", .help = "A.", .labels = {"x", "y"}});
  const std::string shared(Family::kValueBytesMax, 'a');
  for (int i = 0; i < 10; ++i) family.With({shared + std::string(100'000, static_cast<char>('a' + i)), "y"}).Inc();
  EXPECT_EQ(family.series_count(), 1u);
  EXPECT_EQ(family.With({shared, "y"}).value(), 10u);
  EXPECT_LT(metrics.Expose().size(), 1000u);
}

TEST(Metrics, ExpositionIsBounded) {
  MetricsRegistry metrics;
  std::vector<double> buckets;
  for (int i = 0; i < 60; ++i) buckets.push_back(i);
  const std::string long_value(250, 'v');
  for (const char* name : {"b_seconds", "c_seconds"}) {  // 42 MB each
    auto& family = metrics.Histograms({.name = name, .help = "H.", .labels = {"x"}, .buckets = buckets});
    for (int i = 0; i < 2400; ++i) family.With({std::to_string(i) + long_value}).Observe(1);
  }
  metrics.NewCounter({.name = "d_total", .help = "D."}).Inc();
  const std::string text = metrics.Expose();
  EXPECT_LE(text.size(), MetricsRegistry::kExposedBytesMax + 1000);
  EXPECT_NE(text.find("b_seconds_bucket"), std::string::npos);
  EXPECT_EQ(text.find("c_seconds_bucket"), std::string::npos);
  EXPECT_NE(text.find("d_total 1"), std::string::npos);
  EXPECT_NE(text.find("# 1 metric families were left out"), std::string::npos);
}

TEST(Metrics, ManyThreadsLoseNothing) {
  MetricsRegistry metrics;
  auto& counters = metrics.Counters({.name = "a_total", .help = "A.", .labels = {"x"}});
  auto& histogram = metrics.NewHistogram({.name = "h", .help = "H.", .buckets = {1, 2}});
  constexpr int kThreads = 4, kRounds = 2000, kValues = 37;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        counters.With({std::to_string(i % kValues)}).Inc();
        histogram.Observe(i % 3);
        if (i % 500 == 0) (void)metrics.Expose();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t total = 0;
  for (int i = 0; i < kValues; ++i) total += counters.With({std::to_string(i)}).value();
  EXPECT_EQ(total, static_cast<std::uint64_t>(kThreads * kRounds));
  EXPECT_EQ(histogram.count(), static_cast<std::uint64_t>(kThreads * kRounds));
}

TEST(Metrics, FloatsAsGo) {
  struct Case {
    double value;
    const char* want;
  };
  const Case kCases[] = {{0, "0"},
                         {1, "1"},
                         {-1, "-1"},
                         {0.005, "0.005"},
                         {0.0001, "0.0001"},
                         {0.00001, "1e-05"},
                         {123456, "123456"},
                         {1234567, "1.234567e+06"},
                         {1e6, "1e+06"},
                         {100000, "100000"},
                         {1e21, "1e+21"},
                         {1.25, "1.25"},
                         {std::numeric_limits<double>::infinity(), "+Inf"},
                         {-std::numeric_limits<double>::infinity(), "-Inf"},
                         {std::numeric_limits<double>::quiet_NaN(), "NaN"}};
  for (const Case& c : kCases) EXPECT_EQ(FormatFloat(c.value), c.want);
}

TEST(Metrics, Buckets) { EXPECT_EQ(ExponentialBuckets(1, 2, 4), (std::vector<double>{1, 2, 4, 8})); }

TEST(Metrics, OutdatedInfoIsNotExposed) {
  MetricsRegistry registry;
  GaugeVec& info = registry.Gauges({.name = "config_info", .help = "h", .labels = {"hash"}});
  info.With({"one"}).Set(1);
  info.With({"one"}).Set(0);
  info.With({"two"}).Set(1);
  EXPECT_EQ(registry.Expose(), "# HELP config_info h\n# TYPE config_info gauge\nconfig_info{hash=\"two\"} 1\n");
}

TEST(Metrics, ResetClearsSeries) {
  MetricsRegistry registry;
  auto& requests = registry.Counters({.name = "requests_total", .help = "h", .labels = {"code"}});
  Counter& good = requests.With({"200"});
  Counter& plain = registry.NewCounter({.name = "plain_total", .help = "h"});
  auto& running = registry.Gauges({.name = "running", .help = "h", .labels = {"verb"}});
  auto& seconds = registry.Histograms({.name = "seconds", .help = "h", .labels = {"verb"}, .buckets = {1, 2}});
  good.Add(3);
  requests.With({"500"}).Inc();
  plain.Add(5);
  running.With({"GET"}).Set(2);
  seconds.With({"GET"}).Observe(1.5);
  registry.Reset();
  EXPECT_EQ(registry.Expose(), "# HELP plain_total h\n# TYPE plain_total counter\nplain_total 0\n");
  good.Inc();
  plain.Inc();
  running.With({"GET"}).Dec();
  seconds.With({"GET"}).Observe(0.5);
  EXPECT_EQ(
      registry.Expose(),
      "# HELP plain_total h\n# TYPE plain_total counter\nplain_total 1\n"
      "# HELP requests_total h\n# TYPE requests_total counter\nrequests_total{code=\"200\"} 1\n"
      "# HELP running h\n# TYPE running gauge\nrunning{verb=\"GET\"} -1\n"
      "# HELP seconds h\n# TYPE seconds histogram\n"
      "seconds_bucket{verb=\"GET\",le=\"1\"} 1\nseconds_bucket{verb=\"GET\",le=\"2\"} 1\n"
      "seconds_bucket{verb=\"GET\",le=\"+Inf\"} 1\nseconds_sum{verb=\"GET\"} 0.5\nseconds_count{verb=\"GET\"} 1\n");
}

}  // namespace
}  // namespace keelson::telemetry
