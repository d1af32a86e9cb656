// --tracing-config-file: the TracingConfiguration, and its exporter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "app/error.h"
#include "base/outcome.h"
#include "net/dial_forwarder.h"
#include "tracing/exporter.h"

namespace keelson::app {

struct TracingConfiguration {
  std::string endpoint = "localhost:4317";     // a gRPC target
  std::int32_t sampling_rate_per_million = 0;  // of root spans
};

// `text` is YAML or JSON of apiserver.config.k8s.io v1, v1beta1 or v1alpha1, strict; an empty one is all defaults. The
// error is upstream's.
Outcome<TracingConfiguration, std::string> ParseTracingConfiguration(std::string_view text);

struct Tracing {
  std::unique_ptr<net::DialForwarder> forwarder;  // with an egress proxy; outlives the processor
  TracingConfiguration configuration;
  std::shared_ptr<tracing::BatchSpanProcessor> processor;  // null: no file was named
};
// `dialer`: the egress selector's for the control plane, through which a collector at a host and port is reached; null:
// directly.
Outcome<Tracing, Error> MakeTracing(const std::string& path, const net::DialerPtr& dialer);

}  // namespace keelson::app
