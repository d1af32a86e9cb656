#include "flowcontrol/dump.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/duration.h"
#include "object/time.h"

namespace keelson::flowcontrol {
namespace {

// Go's text/tabwriter with cells of at least eight columns and one of padding; the last cell of a row is as it is.
class TextTable {
 public:
  using Row = std::vector<std::string>;

  void Add(Row row) { rows_.push_back(std::move(row)); }
  std::string ToString() const {
    constexpr std::size_t kCellMin = 8;
    std::vector<std::size_t> widths;
    for (const Row& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i + 1 < row.size(); ++i)
        widths[i] = std::max({widths[i], kCellMin, row[i].size() + 2});  // a comma and the padding
    }
    std::string text;
    for (const Row& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        text += row[i];
        if (i + 1 == row.size()) break;
        text += ',';
        text.append(widths[i] - row[i].size() - 1, ' ');
      }
      text += '\n';
    }
    return text;
  }

 private:
  std::vector<Row> rows_;
};

std::string Bool(bool value) { return value ? "true" : "false"; }

class RequestRows {
 public:
  RequestRows(const Controller& controller, DumpDetails details, TextTable& table)
      : clock_(controller.clock()), details_(details), table_(table) {}

  void Add(const Controller::LevelDump& level, const QueueSet::RequestDump& request, int queue, int index) {
    TextTable::Row row = {level.name,
                          request.flow_schema,
                          std::to_string(queue),
                          std::to_string(index),
                          std::string(request.details[RequestDetails::kDistinguisher]),
                          Time(request.arrived),
                          std::to_string(request.work.initial_seats),
                          std::to_string(request.work.final_seats),
                          base::FormatDuration(request.work.additional_latency),
                          request.started ? Time(*request.started) : "0001-01-01T00:00:00Z"};
    if (details_ == DumpDetails::kRequest) {
      for (int column = RequestDetails::kUser; column <= RequestDetails::kSubresource; ++column)
        row.emplace_back(request.details[static_cast<RequestDetails::Column>(column)]);
    }
    table_.Add(std::move(row));
  }

 private:
  std::string Time(base::Clock::SteadyTime at) const {
    const auto ago = std::chrono::duration_cast<base::Clock::SystemTime::duration>(clock_.Monotonic() - at);
    const auto nanoseconds =
        std::chrono::duration_cast<std::chrono::nanoseconds>((clock_.Now() - ago).time_since_epoch()).count();
    std::string text = object::FormatTime(nanoseconds / 1'000'000'000);
    std::string fraction = std::to_string(1'000'000'000 + nanoseconds % 1'000'000'000);
    fraction[0] = '.';
    while (fraction.ends_with('0')) fraction.pop_back();  // as Go's RFC3339Nano
    if (fraction != ".") text.insert(text.size() - 1, fraction);
    return text;
  }
  const base::Clock& clock_;
  const DumpDetails details_;
  TextTable& table_;
};

}  // namespace

std::string DumpPriorityLevels(const Controller& controller) {
  TextTable table;
  table.Add({"PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
             "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"});
  for (const auto& level : controller.Describe()) {
    const QueueSet::Dump& state = level.state;
    table.Add({level.name, std::to_string(state.active_queues), Bool(state.waiting == 0 && state.executing == 0),
               Bool(level.quiescing), std::to_string(state.waiting), std::to_string(state.executing),
               std::to_string(state.dispatched), std::to_string(state.rejected), "0", std::to_string(state.cancelled)});
  }
  return table.ToString();
}

std::string DumpQueues(const Controller& controller) {
  TextTable table;
  table.Add({"PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
             "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"});
  for (const auto& level : controller.Describe()) {
    for (std::size_t i = 0; i < level.state.queues.size(); ++i) {
      const QueueSet::QueueDump& queue = level.state.queues[i];
      table.Add({level.name, std::to_string(i), std::to_string(queue.waiting.size()),
                 std::to_string(queue.executing.size()), std::to_string(queue.seats_in_use),
                 queue.next_dispatch_r.ToString(), std::to_string(queue.initial_seats_sum),
                 std::to_string(queue.max_seats_sum), queue.total_work_sum.ToString()});
    }
  }
  return table.ToString();
}

std::string DumpRequests(const Controller& controller, DumpDetails details) {
  TextTable table;
  TextTable::Row header = {"PriorityLevelName", "FlowSchemaName", "QueueIndex",   "RequestIndexInQueue",
                           "FlowDistingsher",   "ArriveTime",     "InitialSeats", "FinalSeats",
                           "AdditionalLatency", "StartTime"};
  if (details == DumpDetails::kRequest) {
    for (const char* column :
         {"UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"})
      header.emplace_back(column);
  }
  table.Add(std::move(header));
  RequestRows rows(controller, details, table);
  for (const auto& level : controller.Describe()) {
    for (std::size_t i = 0; i < level.state.queues.size(); ++i) {
      const QueueSet::QueueDump& queue = level.state.queues[i];
      const int index = static_cast<int>(i);
      for (std::size_t j = 0; j < queue.waiting.size(); ++j)
        rows.Add(level, queue.waiting[j], index, static_cast<int>(j));
      for (const auto& request : queue.executing) rows.Add(level, request, index, -1);
    }
    for (const auto& request : level.state.queueless) rows.Add(level, request, -1, -1);
  }
  return table.ToString();
}

}  // namespace keelson::flowcontrol
