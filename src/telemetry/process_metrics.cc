#include "telemetry/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace keelson::telemetry {
namespace {

// The fields of /proc/self/stat after the command's name, which may hold anything: field 3 of proc(5) is the first
// here.
std::vector<std::string> ReadStat() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t end = line.rfind(')');
  std::vector<std::string> fields;
  if (end == std::string::npos) return fields;
  std::istringstream rest(line.substr(end + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

double OpenFiles() {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  int count = -1;  // the folder itself is open, too
  while (const dirent* const entry = ::readdir(folder)) count += entry->d_name[0] != '.';
  ::closedir(folder);
  return count;
}

double Limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return 0;
  return limit.rlim_cur == RLIM_INFINITY ? 18446744073709551615.0 : static_cast<double>(limit.rlim_cur);
}

// Received and sent bytes of all interfaces of our network namespace.
void NetworkBytes(double& received, double& sent) {
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream columns(line.substr(colon + 1));
    double values[9] = {};
    for (double& value : values) columns >> value;
    received += values[0];
    sent += values[8];
  }
}

void Collect(Exposition& out, double boot_time) {
  auto write = [&out](std::string_view name, std::string_view help, MetricType type, double value) {
    out.Write({.name = name, .help = help}, type, {}, value);
  };
  const std::vector<std::string> stat = ReadStat();
  constexpr std::size_t kUserTime = 11, kSystemTime = 12, kStartTime = 19, kVirtualBytes = 20, kResidentPages = 21;
  if (stat.size() <= kResidentPages) return;
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  auto number = [&stat](std::size_t index) { return std::stod(stat[index]); };
  write("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", MetricType::kCounter,
        (number(kUserTime) + number(kSystemTime)) / ticks);
  write("process_max_fds", "Maximum number of open file descriptors.", MetricType::kGauge, Limit(RLIMIT_NOFILE));
  double received = 0, sent = 0;
  NetworkBytes(received, sent);
  write("process_network_receive_bytes_total", "Number of bytes received by the process over the network.",
        MetricType::kCounter, received);
  write("process_network_transmit_bytes_total", "Number of bytes sent by the process over the network.",
        MetricType::kCounter, sent);
  write("process_open_fds", "Number of open file descriptors.", MetricType::kGauge, OpenFiles());
  write("process_resident_memory_bytes", "Resident memory size in bytes.", MetricType::kGauge,
        number(kResidentPages) * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  write("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", MetricType::kGauge,
        boot_time + number(kStartTime) / ticks);
  write("process_virtual_memory_bytes", "Virtual memory size in bytes.", MetricType::kGauge, number(kVirtualBytes));
  write("process_virtual_memory_max_bytes", "Maximum amount of virtual memory available in bytes.", MetricType::kGauge,
        Limit(RLIMIT_AS));
}

}  // namespace

void AddProcessMetrics(MetricsRegistry& registry) {
  registry.AddCollector([boot_time = BootTime()](Exposition& out) { Collect(out, boot_time); });
}

}  // namespace keelson::telemetry
