// Spans as OTLP: the bytes of an ExportTraceServiceRequest (opentelemetry-proto, trace/v1). Four messages with a dozen
// fields are written directly; code made from a .proto file would be larger than this.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "telemetry/trace.h"

namespace keelson::tracing {

struct Resource {
  std::string service_name = "apiserver";
  std::string service_instance_id;
};

// One request with all spans of `batches`, by instrumentation scope. Spans keep their order.
std::string EncodeExportRequest(const Resource& resource, std::span<const telemetry::SpanBatch> batches);

// Upstream's name of the library that makes such spans.
std::string_view ScopeName(telemetry::Instrumentation instrumentation);

}  // namespace keelson::tracing
