#include "telemetry/process_metrics.h"

#include <gtest/gtest.h>
#include <time.h>

#include <string>

namespace keelson::telemetry {
namespace {

double ValueOf(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  EXPECT_NE(at, std::string::npos) << name;
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

TEST(ProcessMetrics, ArePlausible) {
  MetricsRegistry metrics;
  AddProcessMetrics(metrics);
  const std::string text = metrics.Expose();
  EXPECT_GT(ValueOf(text, "process_resident_memory_bytes"), 1e6);
  EXPECT_GE(ValueOf(text, "process_virtual_memory_bytes"), ValueOf(text, "process_resident_memory_bytes"));
  EXPECT_GE(ValueOf(text, "process_open_fds"), 3);
  EXPECT_GT(ValueOf(text, "process_max_fds"), 3);
  EXPECT_GE(ValueOf(text, "process_cpu_seconds_total"), 0);
  const double now = static_cast<double>(::time(nullptr));
  EXPECT_NEAR(ValueOf(text, "process_start_time_seconds"), now, 600);
  EXPECT_GE(ValueOf(text, "process_virtual_memory_max_bytes"), 0);
  EXPECT_GE(ValueOf(text, "process_network_receive_bytes_total"), 0);
}

}  // namespace
}  // namespace keelson::telemetry
