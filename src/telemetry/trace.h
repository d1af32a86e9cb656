// The spans of one request, and the trace context it came with and passes on. One source for two readers: what is
// sampled is given to a SpanSink (an exporter) when the last holder lets the trace go, unformatted; spans of slow
// requests are also written to the log (upstream's Trace[...] blocks).
// Thread safety: all members from any thread, by an internal lock that is held for an append at most.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "telemetry/span.h"
#include "telemetry/trace_context.h"

namespace keelson::telemetry {

struct SpanEvent {
  std::string_view name;          // a literal
  std::chrono::nanoseconds at{};  // since the trace's start
  std::vector<Attribute> attributes;
};

struct SpanData {
  std::string name;
  Instrumentation instrumentation = Instrumentation::kComponent;
  SpanKind kind = SpanKind::kInternal;
  SpanContext context;
  SpanID parent_id{};  // zero: a root span
  bool parent_remote = false;
  std::uint32_t parent = UINT32_MAX;  // the parent's place in the trace, if it is there
  std::chrono::nanoseconds start{};   // since the trace's start; may be negative
  std::chrono::nanoseconds end{-1};   // negative: not ended
  bool ended = false;
  std::chrono::nanoseconds log_threshold{};
  std::vector<Attribute> attributes;
  std::vector<SpanEvent> events;
  std::vector<SpanContext> links;
  bool error = false;
  std::string error_message;
  std::uint32_t dropped_events = 0;
};

// Spans that are ready for export.
struct SpanBatch {
  base::Clock::SystemTime start;  // what their times count from
  std::vector<SpanData> spans;
};

// Receives sampled spans. Must not block: called on I/O threads.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void Export(SpanBatch batch) = 0;
};

class Trace {
 public:
  static constexpr std::size_t kSpansMax = 1024;  // more are counted, not recorded
  static constexpr std::size_t kEventsMax = 128;  // OpenTelemetry's default
  struct Options {
    std::shared_ptr<SpanSink> sink;  // null: nothing is exported, and the incoming context is passed on as it came
    std::int32_t sampling_per_million = 0;
    bool log_slow = false;  // record for the log of slow requests
    IncomingContext incoming;
    std::string audit_id;
    const base::Clock* clock = &base::Clock::Real();  // outlives this
    base::Random* random = &base::Random::Real();     // outlives this
  };

  explicit Trace(Options options);
  ~Trace();  // gives sampled spans to the sink
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // The first span of the request, root of a new trace: recorded if the sampling rate says so.
  Span StartRoot(Instrumentation instrumentation, std::string_view name);
  // The span of an HTTP request that began at `start`. A trusted client's context decides, if there is one; else
  // `before` (if any) is the parent of a trusted client's span, and an untrusted client's span begins a trace, linked
  // to the client's context.
  struct Server {
    std::string name;
    bool trusted = false;
    Span before;
    base::Clock::SteadyTime start;
  };
  Span StartServer(Server server);
  // A span for the log alone, where the request has no span that is exported.
  Span Unrecorded() { return At(Span::kNotRecorded); }

  // Writes a Trace[...] block to the log at V(2) if `root`, or any span below it, took as long as its threshold.
  void LogIfLong(const Span& root, base::Random& random = base::Random::Real()) const;

  std::vector<SpanData> spans() const;  // a copy, for tests

 private:
  friend class Span;
  Span At(std::uint32_t index) { return Span(this, index, options_.log_slow); }
  Span Add(SpanData span, std::uint32_t parent);
  Span StartChild(std::uint32_t parent, SpanData span);
  bool ShouldSample(const TraceID& id) const;
  SpanID NewSpanID();
  TraceID NewTraceID();
  std::chrono::nanoseconds Elapsed() const;
  std::vector<std::pair<std::string_view, std::string>> Propagation(std::uint32_t index);

  const Options options_;
  const base::Clock::SystemTime start_;
  const base::Clock::SteadyTime start_steady_;
  mutable std::mutex mutex_;
  SpanContext current_;  // what is passed on where no span is recorded
  std::vector<SpanData> spans_;
  std::uint64_t dropped_ = 0;
};

}  // namespace keelson::telemetry
