#include "app/commands/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "app/commands/progress.h"

namespace keelson::app {
namespace {

using Pair = std::pair<std::string, std::string>;

struct Requests {
  double count = 0, errors = 0, seconds = 0;
  std::map<double, double> buckets;  // upper bound → requests at most so long
};

std::string Resource(const Sample& sample) {
  std::string text(sample.Label("resource"));
  if (text.empty()) text = "-";
  if (const auto sub = sample.Label("subresource"); !sub.empty()) text += "/" + std::string(sub);
  if (const auto group = sample.Label("group"); !group.empty()) text += "." + std::string(group);
  return text;
}

bool IsLong(const Sample& sample) {
  const auto verb = sample.Label("verb");
  return verb == "WATCH" || verb == "CONNECT";
}

double Bound(const Sample& sample) {
  const auto text = sample.Label("le");
  return text == "+Inf" ? HUGE_VAL : std::atof(std::string(text).c_str());
}

void AddRequests(const MetricsText& metrics, double sign, std::map<Pair, Requests>& rows) {
  const auto row = [&rows](const Sample& sample) -> Requests& {
    return rows[{std::string(sample.Label("verb")), Resource(sample)}];
  };
  for (const Sample& sample : metrics.Find("apiserver_request_total")) {
    if (IsLong(sample)) continue;
    row(sample).count += sign * sample.value;
    if (sample.Label("code").starts_with('5')) row(sample).errors += sign * sample.value;
  }
  for (const Sample& sample : metrics.Find("apiserver_request_duration_seconds_sum")) {
    if (!IsLong(sample)) row(sample).seconds += sign * sample.value;
  }
  for (const Sample& sample : metrics.Find("apiserver_request_duration_seconds_bucket")) {
    if (!IsLong(sample)) row(sample).buckets[Bound(sample)] += sign * sample.value;
  }
}

// The bound below which 99 of 100 requests took; 0 when nothing is known.
double Percentile99(const std::map<double, double>& buckets) {
  if (buckets.empty()) return 0;
  const double wanted = 0.99 * buckets.rbegin()->second;
  double last = 0;
  for (const auto& [bound, count] : buckets) {
    if (std::isfinite(bound)) last = bound;
    if (count >= wanted && count > 0) return last;
  }
  return last;
}

std::string Time(double seconds) {
  if (seconds < 0.001) return fmt::format("{:.0f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.1f} s", seconds);
}

using Rows = std::vector<std::pair<Pair, Requests>>;

std::string RequestTables(const MetricsText& now, const MetricsText* before, double seconds, TopOptions options) {
  std::map<Pair, Requests> all;
  AddRequests(now, 1, all);
  if (before != nullptr) AddRequests(*before, -1, all);
  Rows rows;
  for (auto& [key, requests] : all) {
    if (requests.count > 0) rows.emplace_back(key, std::move(requests));
  }
  const auto table = [&](const char* title, auto less) {
    std::string text = fmt::format("\n{:<44} {:>9} {:>9} {:>9} {:>7}\n", title, "per s", "mean", "99% <=", "5xx");
    std::ranges::sort(rows, less);
    for (std::size_t i = 0; i < std::min(options.rows, rows.size()); ++i) {
      const auto& [key, r] = rows[i];
      text += fmt::format("  {:<42} {:>9.1f} {:>9} {:>9} {:>7.0f}\n", key.first + " " + key.second, r.count / seconds,
                          Time(r.seconds / r.count), Time(Percentile99(r.buckets)), r.errors);
    }
    if (rows.empty()) text += "  none\n";
    return text;
  };
  return table("REQUESTS, most often", [](const auto& a, const auto& b) { return a.second.count > b.second.count; }) +
         table("REQUESTS, slowest", [](const auto& a, const auto& b) {
           return a.second.seconds / a.second.count > b.second.seconds / b.second.count;
         });
}

struct Held {
  double objects = 0, bytes = 0, watchers = 0;
};

std::string ResourceTable(const MetricsText& now, TopOptions options) {
  std::map<std::string, Held> by_resource;
  for (const Sample& s : now.Find("apiserver_resource_objects")) by_resource[Resource(s)].objects += s.value;
  for (const Sample& s : now.Find("apiserver_resource_size_estimate_bytes")) by_resource[Resource(s)].bytes += s.value;
  for (const Sample& s : now.Find("keelson_watch_cache_history_bytes")) by_resource[Resource(s)].bytes += s.value;
  for (const Sample& s : now.Find("apiserver_longrunning_requests")) {
    if (s.Label("verb") == "WATCH") by_resource[Resource(s)].watchers += s.value;
  }
  std::vector<std::pair<std::string, Held>> rows(by_resource.begin(), by_resource.end());
  std::erase_if(rows, [](const auto& row) { return row.second.objects <= 0 && row.second.watchers <= 0; });
  std::ranges::sort(rows, [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  std::string text = fmt::format("\n{:<44} {:>9} {:>9} {:>9}\n", "RESOURCES, largest", "objects", "bytes", "watches");
  for (std::size_t i = 0; i < std::min(options.rows, rows.size()); ++i) {
    const auto& [name, held] = rows[i];
    text += fmt::format("  {:<42} {:>9.0f} {:>9} {:>9.0f}\n", name, held.objects,
                        HumanBytes(static_cast<std::uint64_t>(std::max(0.0, held.bytes))), held.watchers);
  }
  return text;
}

struct Level {
  double seats = 0, executing = 0, queued = 0, rejected = 0;
};

std::string FlowControlTable(const MetricsText& now, const MetricsText* before) {
  std::map<std::string, Level> levels;
  const auto add = [&levels](const MetricsText& metrics, const char* name, double Level::* field, double sign) {
    for (const Sample& s : metrics.Find(name)) levels[std::string(s.Label("priority_level"))].*field += sign * s.value;
  };
  add(now, "apiserver_flowcontrol_current_limit_seats", &Level::seats, 1);
  add(now, "apiserver_flowcontrol_current_executing_requests", &Level::executing, 1);
  add(now, "apiserver_flowcontrol_current_inqueue_requests", &Level::queued, 1);
  add(now, "apiserver_flowcontrol_rejected_requests_total", &Level::rejected, 1);
  if (before != nullptr) add(*before, "apiserver_flowcontrol_rejected_requests_total", &Level::rejected, -1);
  if (levels.empty()) return "";
  std::string text =
      fmt::format("\n{:<44} {:>9} {:>9} {:>9} {:>9}\n", "FLOW CONTROL", "seats", "running", "queued", "rejected");
  for (const auto& [name, level] : levels) {
    text += fmt::format("  {:<42} {:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f}\n", name, level.seats, level.executing,
                        level.queued, level.rejected);
  }
  return text;
}

}  // namespace

std::string TopView(const MetricsText& now, const MetricsText* before, double seconds, TopOptions options) {
  seconds = std::max(seconds, 0.001);
  const auto rate = [&](const char* name) {
    return (now.Sum(name) - (before != nullptr ? before->Sum(name) : 0)) / seconds;
  };
  double watches = 0;
  for (const Sample& s : now.Find("apiserver_longrunning_requests"))
    watches += s.Label("verb") == "WATCH" ? s.value : 0;
  std::string text = fmt::format(
      "memory {}   cpu {:.0f}%   requests {:.1f}/s   in flight {:.0f}   watches {:.0f}   watch events {:.1f}/s   store "
      "{}\n",
      HumanBytes(static_cast<std::uint64_t>(std::max(0.0, now.Sum("process_resident_memory_bytes")))),
      100 * rate("process_cpu_seconds_total"), rate("apiserver_request_total"),
      now.Sum("apiserver_current_inflight_requests"), watches, rate("apiserver_watch_events_total"),
      HumanBytes(static_cast<std::uint64_t>(std::max(0.0, now.Sum("apiserver_storage_size_bytes")))));
  return text + RequestTables(now, before, seconds, options) + ResourceTable(now, options) +
         FlowControlTable(now, before);
}

}  // namespace keelson::app
