// The page of `keelson top`, made from one or two readings of /metrics.
#pragma once

#include <cstddef>
#include <string>

#include "app/commands/metrics_text.h"

namespace keelson::app {

struct TopOptions {
  std::size_t rows = 8;     // of each table at most
  std::size_t columns = 0;  // of the screen: longer names are cut; 0: none is
};

// `before` null: rates and latencies since the server started. `seconds` between the two readings; without `before`
// the age of the server.
std::string TopView(const MetricsText& now, const MetricsText* before, double seconds, TopOptions options);

}  // namespace keelson::app
