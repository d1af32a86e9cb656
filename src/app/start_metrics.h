// Metrics of the binary and its options (version, feature gates), and the options of the metrics endpoint.
#pragma once

#include "app/completed_options.h"
#include "telemetry/metrics.h"

namespace keelson::app {

// --disabled-metrics and --allow-metric-labels, then the process's figures, kubernetes_build_info, version_info,
// kubernetes_feature_enabled and the counts of metrics themselves. REQUIRES: called before anything else registers a
// family; `completed` and `registry` outlive each other's use.
void RegisterStartMetrics(telemetry::MetricsRegistry& registry, const CompletedOptions& completed);

}  // namespace keelson::app
