// W3C trace context and baggage: the headers by which a trace goes from one server to the next.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace keelson::telemetry {

using TraceID = std::array<std::uint8_t, 16>;
using SpanID = std::array<std::uint8_t, 8>;

struct SpanContext {
  TraceID trace_id{};
  SpanID span_id{};
  bool sampled = false;
  std::string trace_state;

  bool valid() const { return trace_id != TraceID{} && span_id != SpanID{}; }
};

struct IncomingContext {
  std::optional<SpanContext> span;  // none: the client sent none, or none that can be read
  std::string baggage;
};

inline constexpr std::string_view kTraceparent = "traceparent";
inline constexpr std::string_view kTracestate = "tracestate";
inline constexpr std::string_view kBaggage = "baggage";
inline constexpr std::size_t kBaggageBytesMax = 8192;

// As OpenTelemetry's TraceContext propagator reads them: nothing for what is malformed or zero; versions after 00 may
// have more fields. A tracestate that cannot be read is left out.
std::optional<SpanContext> ParseTraceparent(std::string_view traceparent, std::string_view tracestate);
IncomingContext ParseContext(std::string_view traceparent, std::string_view tracestate, std::string_view baggage);
std::string FormatTraceparent(const SpanContext& context);
// `tracestate` in canonical form; "" where it is malformed.
std::string ParseTraceState(std::string_view text);

}  // namespace keelson::telemetry
