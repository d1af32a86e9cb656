// The process's own figures, read from /proc when metrics are exposed: process_cpu_seconds_total,
// process_resident_memory_bytes, ...
#pragma once

#include "telemetry/metrics.h"

namespace keelson::telemetry {

void AddProcessMetrics(MetricsRegistry& registry);

}  // namespace keelson::telemetry
