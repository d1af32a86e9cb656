#include "telemetry/log.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <string>
#include <thread>
#include <vector>

namespace keelson::log {
namespace {

class FixedClock final : public base::Clock {
 public:
  SystemTime Now() const override {
    return SystemTime{std::chrono::microseconds{1'794'801'600'000'123}};
  }  // 2026-11-16 04:00:00 UTC
  SteadyTime Monotonic() const override { return {}; }
};

class LogTest : public ::testing::Test {
 protected:
  LogTest() : sink_([this](Severity, std::string_view line) { lines_.emplace_back(line); }) {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  ~LogTest() override { Configure({}); }
  void Use(Options options) {
    options.clock = &clock_;
    Configure(options);
  }
  // The line without the thread's number and the place, which move.
  static std::string Body(const std::string& line) { return line.substr(line.find("] ") + 2); }

  FixedClock clock_;
  std::vector<std::string> lines_;
  ScopedSink sink_;
};

struct Failure {
  std::string_view message() const { return "it broke"; }
};

TEST_F(LogTest, HeaderEqualsKlog) {
  Use({});
  Info("Started");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].substr(0, 22), "I1116 04:00:00.000123 ");
  EXPECT_EQ(lines_[0][29], ' ') << lines_[0];  // the thread's number in seven columns
  EXPECT_NE(lines_[0].find("log_test.cc:"), std::string::npos);
  EXPECT_EQ(Body(lines_[0]), "\"Started\"\n");
}

TEST_F(LogTest, PairsAreWrittenAsKlogDoes) {
  Use({});
  const std::string name = "a \"b\"";
  Warning("Said", "text", "x", "name", name, "int", -5, "big", std::uint64_t{1} << 63, "ok", true, "ratio", 0.25,
          "took", std::chrono::milliseconds{1500}, "err", Failure{}, "lines", "one\ntwo");
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0][0], 'W');
  EXPECT_EQ(Body(lines_[0]),
            "\"Said\" text=\"x\" name=\"a \\\"b\\\"\" int=-5 big=9223372036854775808 ok=true ratio=0.25 took=\"1.5s\" "
            "err=\"it broke\" lines=<\n\tone\n\ttwo\n >\n");
}

TEST_F(LogTest, LevelsAndModules) {
  Use({.verbosity = 2});
  V(2).Info("shown");
  V(3).Info("hidden");
  EXPECT_EQ(lines_.size(), 1u);
  Use({.vmodule = {{"log_*", 4}, {"other", 9}}});
  V(4).Info("shown by its file");
  V(5).Info("hidden");
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(LogTest, TextIsNotQuoted) {
  Use({.verbosity = 1});
  V(1).Text("FLAG: --v=\"1\"");
  EXPECT_EQ(Body(lines_.at(0)), "FLAG: --v=\"1\"\n");
}

TEST_F(LogTest, JSON) {
  Use({.format = Format::kJSON, .verbosity = 3});
  V(3).Info("Said", "n", 1, "text", "a\"\n\x01\xff", "took", std::chrono::seconds{61});
  Error("Failed", "err", Failure{});
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[0].substr(0, lines_[0].find(",\"caller")), "{\"ts\":1794801600000.123");
  EXPECT_EQ(lines_[0].substr(lines_[0].find(",\"msg")),
            ",\"msg\":\"Said\",\"v\":3,\"n\":1,\"text\":\"a\\\"\\n\\u0001\xEF\xBF\xBD\",\"took\":\"1m1s\"}\n");
  EXPECT_NE(lines_[0].find("\"caller\":\"telemetry/log_test.cc:"), std::string::npos) << lines_[0];
  EXPECT_EQ(lines_[1].substr(lines_[1].find(",\"msg")), ",\"msg\":\"Failed\",\"err\":\"it broke\"}\n");
}

TEST(LogWriter, WritesEverythingBeforeItEnds) {
  ::testing::internal::CaptureStderr();
  {
    Writer writer;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 100; ++i) Info("Counted", "thread", t, "i", i);
      });
    }
    for (std::thread& thread : threads) thread.join();
    Flush();
    Info("After the flush");
  }
  Info("After the end");
  const std::string text = ::testing::internal::GetCapturedStderr();
  std::size_t lines = 0;
  for (const char c : text) lines += c == '\n';
  EXPECT_EQ(lines, 402u);
  EXPECT_NE(text.find("After the flush"), std::string::npos);
  EXPECT_NE(text.find("After the end"), std::string::npos);
}

}  // namespace
}  // namespace keelson::log
