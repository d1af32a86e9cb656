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
  const auto sub = sample.Label("subresource");
  if (text.empty() && sub.starts_with('/')) return std::string(sub);  // a path: /readyz
  if (text.empty()) text = "-";
  if (!sub.empty()) text += "/" + std::string(sub);
  if (const auto group = sample.Label("group"); !group.empty()) text += "." + std::string(group);
  return text;
}

bool IsLong(const Sample& sample) {
  const auto verb = sample.Label("verb");
  return verb == "WATCH" || verb == "CONNECT";
}

double Bound(const Sample& sample) {
  const auto text = sample.Label("le");
  const double bound = std::atof(std::string(text).c_str());
  return std::isnan(bound) ? HUGE_VAL : bound;  // NaN has no place in a map
}

// Sums of many samples may be beyond what 64 bits hold.
std::string Bytes(double bytes) {
  return HumanBytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, MetricsText::kValueMax)));
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

// A table of the page: the name of each row, and its formatted figures.
struct Table {
  std::string title, heads;
  std::vector<Pair> rows;
};

using Rows = std::vector<std::pair<Pair, Requests>>;

std::vector<Table> RequestTables(const MetricsText& now, const MetricsText* before, double seconds,
                                 TopOptions options) {
  std::map<Pair, Requests> all;
  AddRequests(now, 1, all);
  if (before != nullptr) AddRequests(*before, -1, all);
  Rows rows;
  for (auto& [key, requests] : all) {
    if (requests.count > 0) rows.emplace_back(key, std::move(requests));
  }
  const auto table = [&](const char* title, auto less) {
    Table made{.title = title, .heads = fmt::format("{:>9} {:>9} {:>9} {:>7}", "per s", "mean", "99% <=", "5xx")};
    std::ranges::sort(rows, less);
    for (std::size_t i = 0; i < std::min(options.rows, rows.size()); ++i) {
      const auto& [key, r] = rows[i];
      made.rows.emplace_back(key.first + " " + key.second,
                             fmt::format("{:>9.1f} {:>9} {:>9} {:>7.0f}", r.count / seconds, Time(r.seconds / r.count),
                                         Time(Percentile99(r.buckets)), r.errors));
    }
    return made;
  };
  return {table("REQUESTS, most often", [](const auto& a, const auto& b) { return a.second.count > b.second.count; }),
          table("REQUESTS, slowest", [](const auto& a, const auto& b) {
            return a.second.seconds / a.second.count > b.second.seconds / b.second.count;
          })};
}

struct Held {
  double objects = 0, bytes = 0, watchers = 0;
};

Table ResourceTable(const MetricsText& now, TopOptions options) {
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
  Table made{.title = "RESOURCES, largest", .heads = fmt::format("{:>9} {:>9} {:>9}", "objects", "bytes", "watches")};
  for (std::size_t i = 0; i < std::min(options.rows, rows.size()); ++i) {
    const auto& [name, held] = rows[i];
    const std::string bytes = Bytes(held.bytes);
    made.rows.emplace_back(name, fmt::format("{:>9.0f} {:>9} {:>9.0f}", held.objects, bytes, held.watchers));
  }
  return made;
}

struct Level {
  double seats = 0, executing = 0, queued = 0, rejected = 0;
};

Table FlowControlTable(const MetricsText& now, const MetricsText* before) {
  std::map<std::string, Level> levels;
  const auto add = [&levels](const MetricsText& metrics, const char* name, double Level::* field, double sign) {
    for (const Sample& s : metrics.Find(name)) levels[std::string(s.Label("priority_level"))].*field += sign * s.value;
  };
  add(now, "apiserver_flowcontrol_current_limit_seats", &Level::seats, 1);
  add(now, "apiserver_flowcontrol_current_executing_requests", &Level::executing, 1);
  add(now, "apiserver_flowcontrol_current_inqueue_requests", &Level::queued, 1);
  add(now, "apiserver_flowcontrol_rejected_requests_total", &Level::rejected, 1);
  if (before != nullptr) add(*before, "apiserver_flowcontrol_rejected_requests_total", &Level::rejected, -1);
  Table made{.title = "FLOW CONTROL",
             .heads = fmt::format("{:>9} {:>9} {:>9} {:>9}", "seats", "running", "queued", "rejected")};
  for (const auto& [name, level] : levels) {
    made.rows.emplace_back(name, fmt::format("{:>9.0f} {:>9.0f} {:>9.0f} {:>9.0f}", level.seats, level.executing,
                                             level.queued, level.rejected));
  }
  return made;
}

// Figures are in the same columns in every table: names take as many columns as the longest, or as the screen leaves.
std::string Aligned(const std::vector<Table>& tables, TopOptions options) {
  constexpr std::size_t kIndent = 2, kNameMin = 18;
  std::size_t name_width = kNameMin, figures_width = 0;
  for (const Table& table : tables) {
    figures_width = std::max(figures_width, table.heads.size());
    for (const auto& [name, figures] : table.rows) name_width = std::max(name_width, name.size());
  }
  const std::size_t others = kIndent + 1 + figures_width;
  if (options.columns > 0) name_width = std::min(name_width, std::max(options.columns, others + kNameMin) - others);
  std::string text;
  for (const Table& table : tables) {
    text += fmt::format("\n{:<{}} {}\n", table.title, kIndent + name_width, table.heads);
    for (const auto& [name, figures] : table.rows) {
      const bool fits = name.size() <= name_width;
      text += fmt::format("  {:<{}} {}\n", fits ? name : name.substr(0, name_width - 2) + "..", name_width, figures);
    }
    if (table.rows.empty()) text += "  none\n";
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
      Bytes(now.Sum("process_resident_memory_bytes")), 100 * rate("process_cpu_seconds_total"),
      rate("apiserver_request_total"), now.Sum("apiserver_current_inflight_requests"), watches,
      rate("apiserver_watch_events_total"), Bytes(now.Sum("apiserver_storage_size_bytes")));
  std::vector<Table> tables = RequestTables(now, before, seconds, options);
  tables.push_back(ResourceTable(now, options));
  if (Table levels = FlowControlTable(now, before); !levels.rows.empty()) tables.push_back(std::move(levels));
  return text + Aligned(tables, options);
}

}  // namespace keelson::app
