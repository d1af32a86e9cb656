// Headers of a client's trace context: whatever is read is written, and read again as the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "telemetry/trace_context.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace keelson::telemetry;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  const std::string_view first = text.substr(0, line);
  const std::string_view second = line == std::string_view::npos ? std::string_view() : text.substr(line + 1);
  const std::string state = ParseTraceState(second);
  KS_CHECK(ParseTraceState(state) == state);
  const IncomingContext context = ParseContext(first, second, second);
  if (!context.span) return 0;
  const auto again = ParseTraceparent(FormatTraceparent(*context.span), context.span->trace_state);
  KS_CHECK(again && again->trace_id == context.span->trace_id && again->span_id == context.span->span_id);
  KS_CHECK(again->sampled == context.span->sampled && again->trace_state == context.span->trace_state);
  return 0;
}
