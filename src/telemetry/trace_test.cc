#include "telemetry/trace.h"
#include "base/testing/seeded_random.h"

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

class KeepingSink final : public SpanSink {
 public:
  void Export(SpanBatch batch) override { batches.push_back(std::move(batch)); }
  std::vector<SpanBatch> batches;
};

constexpr std::string_view kSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr std::string_view kNotSampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

std::string HeaderOf(const Span& span, std::string_view name) {
  for (const auto& [key, value] : span.Propagation()) {
    if (key == name) return value;
  }
  return "";
}

TEST(Trace, NullSpansCostNothingAndDoNothing) {
  const Span none;
  EXPECT_FALSE(none.active());
  EXPECT_FALSE(none.Start("x").recording());
  none.AddEvent("x");
  none.End();
  EXPECT_TRUE(none.Propagation().empty());
}

TEST(Trace, ExportsTheTreeWhenTheLastHolderIsGone) {
  auto sink = std::make_shared<KeepingSink>();
  auto trace = std::make_shared<Trace>(Trace::Options{.sink = sink, .sampling_per_million = 1'000'000});
  const Span first = trace->StartRoot(Instrumentation::kFilter, "authentication");
  const Span server = trace->StartServer({.name = "GET", .trusted = true, .before = first});
  const Span get = server.Start("Get");
  get.AddEvent("About to Get from storage", {{"len", 3}});
  for (const Span& span : {get, server, first}) span.End();
  EXPECT_TRUE(sink->batches.empty());
  trace.reset();
  ASSERT_EQ(sink->batches.size(), 1u);
  const auto& spans = sink->batches[0].spans;
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].parent_id, SpanID{});
  EXPECT_EQ(spans[1].parent_id, spans[0].context.span_id);
  EXPECT_EQ(spans[2].parent_id, spans[1].context.span_id);
  EXPECT_EQ(spans[2].context.trace_id, spans[0].context.trace_id);
  EXPECT_EQ(spans[2].events.at(0).attributes.at(0).number, 3);
}

TEST(Trace, ParentContextByTrust) {
  struct Case {
    const char* name;
    bool trusted;
    std::string_view header;
    std::int32_t rate;
    bool recorded, clients_trace, linked;
  };
  const Case cases[] = {
      {"trusted, sampled, any rate", true, kSampled, 0, true, true, false},
      {"trusted, not sampled, full rate", true, kNotSampled, 1'000'000, false, false, false},
      {"trusted, no context, full rate", true, "", 1'000'000, true, false, false},
      {"others, sampled, rate 0", false, kSampled, 0, false, false, false},
      {"others, sampled, full rate", false, kSampled, 1'000'000, true, false, true},
      {"others, not sampled, full rate", false, kNotSampled, 1'000'000, true, false, true},
      {"others, no context", false, "", 1'000'000, true, false, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Trace trace({.sink = std::make_shared<KeepingSink>(),
                 .sampling_per_million = c.rate,
                 .incoming = ParseContext(c.header, "", "")});
    const Span first = trace.StartRoot(Instrumentation::kFilter, "authentication");
    const Span server = trace.StartServer({.name = "GET", .trusted = c.trusted, .before = first});
    ASSERT_EQ(server.recording(), c.recorded);
    if (!c.recorded) continue;
    const SpanData span = trace.spans().back();
    EXPECT_EQ(span.parent_remote, c.clients_trace);
    EXPECT_EQ(span.links.size(), c.linked ? 1u : 0u);
    EXPECT_EQ(FormatTraceparent(span.context).starts_with(kSampled.substr(0, 35)), c.clients_trace);
  }
}

TEST(Trace, SamplingFollowsTheTraceID) {
  auto sink = std::make_shared<KeepingSink>();
  const auto random = base::Seeded(1);
  int sampled = 0;
  for (int i = 0; i < 10'000; ++i) {
    Trace trace({.sink = sink, .sampling_per_million = 100'000, .random = random.get()});
    sampled += trace.StartRoot(Instrumentation::kFilter, "authentication").recording() ? 1 : 0;
  }
  EXPECT_NEAR(sampled, 1000, 150);
}

TEST(Trace, PassesTheContextOn) {
  Trace unconfigured({.incoming = ParseContext(kSampled, "a=1", "k=v")});
  EXPECT_EQ(HeaderOf(unconfigured.Unrecorded(), kTraceparent), kSampled) << "as it came";
  EXPECT_EQ(HeaderOf(unconfigured.Unrecorded(), kTracestate), "a=1");
  EXPECT_EQ(HeaderOf(unconfigured.Unrecorded(), kBaggage), "k=v");

  Trace unsampled({.sink = std::make_shared<KeepingSink>()});
  const Span server = unsampled.StartServer({.name = "GET"});
  EXPECT_FALSE(server.recording());
  EXPECT_TRUE(HeaderOf(server, kTraceparent).ends_with("-00")) << "the decision is passed on, too";

  Trace sampled({.sink = std::make_shared<KeepingSink>(), .sampling_per_million = 1'000'000});
  const Span recorded = sampled.StartServer({.name = "GET"});
  EXPECT_EQ(HeaderOf(recorded, kTraceparent), FormatTraceparent(sampled.spans().back().context));
}

TEST(Trace, SpansAndEventsAreBounded) {
  Trace trace({.sink = std::make_shared<KeepingSink>(), .sampling_per_million = 1'000'000});
  const Span root = trace.StartServer({.name = "GET"});
  for (std::size_t i = 0; i < 2 * Trace::kEventsMax; ++i) root.AddEvent("event");
  for (std::size_t i = 0; i < 2 * Trace::kSpansMax; ++i) root.Start("child").End();
  EXPECT_EQ(trace.spans().size(), Trace::kSpansMax);
  EXPECT_EQ(trace.spans()[0].events.size(), Trace::kEventsMax);
  EXPECT_EQ(trace.spans()[0].dropped_events, Trace::kEventsMax);
}

TEST(LatencyTrackers, SumsAndLongest) {
  LatencyTrackers trackers;
  trackers.Add(LatencyTrackers::kEtcd, 2ms);
  trackers.Add(LatencyTrackers::kEtcd, 3ms);
  trackers.AtLeast(LatencyTrackers::kValidatingWebhook, 3ms);
  trackers.AtLeast(LatencyTrackers::kValidatingWebhook, 2ms);
  EXPECT_EQ(trackers.spent(LatencyTrackers::kEtcd), 5ms);
  EXPECT_EQ(trackers.spent(LatencyTrackers::kValidatingWebhook), 3ms);
  EXPECT_EQ(LatencyTrackers::Name(LatencyTrackers::kImpersonation), "impersonation");
}

class TraceLogTest : public ::testing::Test {
 protected:
  TraceLogTest()
      : sink_([this](log::Severity, std::string_view line) { logged_ += line.substr(line.find("] ") + 2); }) {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
    log::SetVerbosity(2);
  }
  ~TraceLogTest() override { log::SetVerbosity(0); }
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
  Trace trace_{{.log_slow = true, .clock = &clock_}};
  const Span request_ = trace_.Unrecorded();
};

TEST_F(TraceLogTest, FastRequestsAreNotLogged) {
  const Span list = request_.Start("List");
  clock_.elapsed += 499ms;
  list.AddEvent("done");
  list.End();
  trace_.LogIfLong(list);
  EXPECT_EQ(logged_, "");
}

TEST_F(TraceLogTest, SlowStepsAreLogged) {
  const Span list = request_.Start("List", {{"accept", "application/json"}, {"verb", "LIST"}});
  clock_.elapsed += 10ms;
  list.AddEvent("quick");
  clock_.elapsed += 600ms;
  list.AddEvent("Listing from storage done", {{"count", 5}});
  clock_.elapsed += 2ms;
  list.End();
  trace_.LogIfLong(list);
  EXPECT_EQ(Logged(),
            R"(Trace[N]: "List" accept:application/json,verb:LIST (16-Nov-2026 04:00:00.000) (total time: 612ms):
Trace[N]: ---"Listing from storage done" count:5 600ms (04:00:00.610)
Trace[N]: [612ms] [612ms] END
)");
}

TEST_F(TraceLogTest, NestedSpansAreWrittenWithTheirRoot) {
  const Span update = request_.Start("Update");
  const Span nested = update.Start("GuaranteedUpdate etcd3", {{"key", "/a"}});
  clock_.elapsed += 550ms;
  nested.AddEvent("Txn call completed");
  nested.End();
  update.End();
  trace_.LogIfLong(update);
  EXPECT_EQ(Logged(), R"(Trace[N]: "Update" (16-Nov-2026 04:00:00.000) (total time: 550ms):
Trace[N]: ["GuaranteedUpdate etcd3" key:/a 550ms (04:00:00.000)
Trace[N]:  ---"Txn call completed" 550ms (04:00:00.550)]
Trace[N]: [550ms] [550ms] END
)");
}

}  // namespace
}  // namespace keelson::telemetry
