#include "telemetry/trace.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <string>

#include "telemetry/log.h"

namespace keelson::telemetry {
namespace {

using namespace std::chrono_literals;

class ManualClock final : public base::Clock {
 public:
  SystemTime Now() const override { return SystemTime{1'794'801'600s + elapsed}; }
  SteadyTime Monotonic() const override { return SteadyTime{elapsed}; }
  std::chrono::milliseconds elapsed{0};
};

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() : sink_([this](log::Severity, std::string_view line) { logged_ += line.substr(line.find("] ") + 2); }) {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    log::SetVerbosity(2);
  }
  ~TraceTest() override { log::SetVerbosity(0); }
  // The trace's number is random: "Trace[N]".
  std::string Logged() const {
    std::string text = logged_;
    for (std::size_t at = 0; (at = text.find("Trace[", at)) != std::string::npos; at += 8) {
      text.replace(at + 6, text.find(']', at) - at - 6, "N");
    }
    return text;
  }

  ManualClock clock_;
  std::string logged_;
  log::ScopedSink sink_;
};

TEST_F(TraceTest, NothingBelowTheThreshold) {
  Trace trace(clock_, "List");
  clock_.elapsed += 499ms;
  trace.Step("done");
  trace.LogIfLong(500ms);
  EXPECT_EQ(logged_, "");
}

TEST_F(TraceTest, StepsThatTookTheirShare) {
  Trace trace(clock_, "List", {{"accept", "application/json"}, {"verb", "LIST"}});
  clock_.elapsed += 10ms;
  trace.Step("quick");
  clock_.elapsed += 600ms;
  trace.Step("Listing from storage done", {{"count", "5"}});
  clock_.elapsed += 2ms;
  trace.LogIfLong(500ms);
  EXPECT_EQ(Logged(),
            R"(Trace[N]: "List" accept:application/json,verb:LIST (16-Nov-2026 04:00:00.000) (total time: 612ms):
Trace[N]: ---"Listing from storage done" count:5 600ms (04:00:00.610)
Trace[N]: [612ms] [612ms] END
)");
}

TEST_F(TraceTest, NestedTraceIsWrittenWithItsRoot) {
  Trace trace(clock_, "Update");
  Trace& nested = trace.Nest("GuaranteedUpdate etcd3", {{"key", "/a"}});
  clock_.elapsed += 550ms;
  nested.Step("Txn call finished");
  nested.LogIfLong(500ms);
  trace.LogIfLong(500ms);
  EXPECT_EQ(Logged(), R"(Trace[N]: "Update" (16-Nov-2026 04:00:00.000) (total time: 550ms):
Trace[N]: ["GuaranteedUpdate etcd3" key:/a 550ms (04:00:00.000)
Trace[N]:  ---"Txn call finished" 550ms (04:00:00.550)]
Trace[N]: [550ms] [550ms] END
)");
}

}  // namespace
}  // namespace keelson::telemetry
