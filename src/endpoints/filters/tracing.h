// OpenTelemetry's place in the handler chain: the trace of a request, and its span of kind SERVER.
#pragma once

#include <cstdint>
#include <memory>

#include "endpoints/exchange.h"

namespace keelson::telemetry {
class SpanSink;  // telemetry/trace.h
}

namespace keelson::endpoints::filters {

struct TracingOptions {
  std::shared_ptr<telemetry::SpanSink> sink;  // null: no tracing configuration
  std::int32_t sampling_per_million = 0;
};

// The trace that a request needs; none where nothing is recorded and the client has sent no context to pass on.
void BeginTrace(Exchange& exchange, const TracingOptions& options);

// A filter's own work, ended by its End(): the parent of every span that follows.
telemetry::Span StartFilterSpan(Exchange& exchange, std::string_view name);

// After authentication: starts the server's span. Clients in system:masters and system:monitoring are trusted to have
// their traces continued; all others begin a new one, linked to theirs (upstream's public endpoint).
Handler WithTracing(Handler next);

}  // namespace keelson::endpoints::filters
