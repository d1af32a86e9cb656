#include "flowcontrol/metrics.h"

namespace keelson::flowcontrol {
namespace {

using telemetry::MetricOptions;
using telemetry::Stability;

const std::vector<std::string_view> kLevel = {"priority_level"};
const std::vector<std::string_view> kFlow = {"priority_level", "flow_schema"};
const std::vector<double> kDurationBuckets = {0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30};

MetricOptions OfLevel(std::string_view name, std::string_view help, Stability stability = Stability::kAlpha) {
  return {.name = name, .help = help, .stability = stability, .labels = kLevel};
}
MetricOptions OfFlow(std::string_view name, std::string_view help, Stability stability,
                     std::vector<double> buckets = {}) {
  return {.name = name, .help = help, .stability = stability, .labels = kFlow, .buckets = std::move(buckets)};
}
MetricOptions OfFlowAnd(std::string_view label, MetricOptions options) {
  options.labels.push_back(label);
  return options;
}
MetricOptions OfBound(MetricOptions options) {
  options.labels.push_back("bound");
  return options;
}

std::vector<std::string> Values(std::string_view a, std::string_view b) { return {std::string(a), std::string(b)}; }
std::vector<std::string> Values(std::string_view a, std::string_view b, std::string_view c) {
  return {std::string(a), std::string(b), std::string(c)};
}
std::vector<std::string> Values(std::string_view a) { return {std::string(a)}; }

}  // namespace

MetricFamilies::MetricFamilies(telemetry::MetricsRegistry& r)
    : dispatched(
          r.Counters(OfFlow("apiserver_flowcontrol_dispatched_requests_total",
                            "Number of requests executed by API Priority and Fairness subsystem", Stability::kBeta))),
      rejected(r.Counters(OfFlowAnd(
          "reason", OfFlow("apiserver_flowcontrol_rejected_requests_total",
                           "Number of requests rejected by API Priority and Fairness subsystem", Stability::kBeta)))),
      inqueue_requests(
          r.Gauges(OfFlow("apiserver_flowcontrol_current_inqueue_requests",
                          "Number of requests currently pending in queues of the API Priority and Fairness subsystem",
                          Stability::kBeta))),
      inqueue_seats(
          r.Gauges(OfFlow("apiserver_flowcontrol_current_inqueue_seats",
                          "Number of seats currently pending in queues of the API Priority and Fairness subsystem",
                          Stability::kAlpha))),
      executing_requests(r.Gauges(OfFlow("apiserver_flowcontrol_current_executing_requests",
                                         "Number of requests in initial (for a WATCH) or any (for a non-WATCH) "
                                         "execution stage in the API Priority and Fairness subsystem",
                                         Stability::kBeta))),
      executing_seats(
          r.Gauges(OfFlow("apiserver_flowcontrol_current_executing_seats",
                          "Concurrency (number of seats) occupied by the currently executing (initial stage for a "
                          "WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem",
                          Stability::kBeta))),
      queue_length_after_enqueue(r.Histograms(OfFlow(
          "apiserver_flowcontrol_request_queue_length_after_enqueue",
          "Length of queue in the API Priority and Fairness subsystem, as seen by each request after it is enqueued",
          Stability::kAlpha, {0, 10, 25, 50, 100, 250, 500, 1000}))),
      wait_duration(r.Histograms(OfFlowAnd("execute", OfFlow("apiserver_flowcontrol_request_wait_duration_seconds",
                                                             "Length of time a request spent waiting in its queue",
                                                             Stability::kBeta, kDurationBuckets)))),
      execution_duration(r.Histograms(OfFlowAnd(
          "type", OfFlow("apiserver_flowcontrol_request_execution_seconds",
                         "Duration of initial stage (for a WATCH) or any (for a non-WATCH) stage of request execution "
                         "in the API Priority and Fairness subsystem",
                         Stability::kAlpha, kDurationBuckets)))),
      estimated_seats(r.Histograms(OfFlow("apiserver_flowcontrol_work_estimated_seats",
                                          "Number of estimated seats (maximum of initial and final seats) associated "
                                          "with requests in API Priority and Fairness",
                                          Stability::kAlpha, {1, 2, 4, 8, 16, 32, 64, 100}))),
      watch_count_samples(r.Histograms(OfFlow("apiserver_flowcontrol_watch_count_samples",
                                              "count of watchers for mutating requests in API Priority and Fairness",
                                              Stability::kAlpha, {0, 1, 10, 100, 1000, 10000}))),
      nominal_limit(
          r.Gauges(OfLevel("apiserver_flowcontrol_nominal_limit_seats",
                           "Nominal number of execution seats configured for each priority level", Stability::kBeta))),
      lower_limit(
          r.Gauges(OfLevel("apiserver_flowcontrol_lower_limit_seats",
                           "Configured lower bound on number of execution seats available to each priority level"))),
      upper_limit(
          r.Gauges(OfLevel("apiserver_flowcontrol_upper_limit_seats",
                           "Configured upper bound on number of execution seats available to each priority level"))),
      current_limit(r.Gauges(OfLevel("apiserver_flowcontrol_current_limit_seats",
                                     "current derived number of execution seats available to each priority level"))),
      demand_high_watermark(r.Gauges(OfLevel("apiserver_flowcontrol_demand_seats_high_watermark",
                                             "High watermark, over last adjustment period, of demand_seats"))),
      demand_average(r.Gauges(OfLevel("apiserver_flowcontrol_demand_seats_average",
                                      "Time-weighted average, over last adjustment period, of demand_seats"))),
      demand_deviation(
          r.Gauges(OfLevel("apiserver_flowcontrol_demand_seats_stdev",
                           "Time-weighted standard deviation, over last adjustment period, of demand_seats"))),
      demand_smoothed(r.Gauges(OfLevel("apiserver_flowcontrol_demand_seats_smoothed", "Smoothed seat demands"))),
      target(r.Gauges(OfLevel("apiserver_flowcontrol_target_seats", "Seat allocation targets"))),
      fair_fraction(r.Gauges({.name = "apiserver_flowcontrol_seat_fair_frac",
                              .help = "Fair fraction of server's concurrency to allocate to each priority level that "
                                      "can use it",
                              .stability = Stability::kAlpha})),
      current_r(r.Gauges(OfLevel("apiserver_flowcontrol_current_r", "R(time of last change)"))),
      dispatch_r(r.Gauges(OfLevel("apiserver_flowcontrol_dispatch_r", "R(time of last dispatch)"))),
      latest_s(r.Gauges(OfLevel("apiserver_flowcontrol_latest_s", "S(most recently dispatched request)"))),
      next_s_bounds(r.Gauges(OfBound(OfLevel("apiserver_flowcontrol_next_s_bounds",
                                             "min and max, over queues, of S(oldest waiting request in queue)")))),
      next_discounted_s_bounds(r.Gauges(
          OfBound(OfLevel("apiserver_flowcontrol_next_discounted_s_bounds",
                          "min and max, over queues, of S(oldest waiting request in queue) - estimated work in "
                          "progress")))),
      request_utilization(r.Histograms(
          {.name = "apiserver_flowcontrol_priority_level_request_utilization",
           .help = "Observations, at the end of every nanosecond, of number of requests (as a fraction of the relevant "
                   "limit) waiting or in any stage of execution (but only initial stage for WATCHes)",
           .stability = Stability::kAlpha,
           .labels = {"phase", "priority_level"},
           .buckets = {0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1}})),
      seat_utilization(r.Histograms(
          {.name = "apiserver_flowcontrol_priority_level_seat_utilization",
           .help = "Observations, at the end of every nanosecond, of utilization of seats for any stage of execution "
                   "(but only initial stage for WATCHes)",
           .stability = Stability::kAlpha,
           .labels = {"priority_level", "phase"},
           .buckets = {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}})),
      demand(r.Histograms(
          {.name = "apiserver_flowcontrol_demand_seats",
           .help = "Observations, at the end of every nanosecond, of (the number of seats each priority level could "
                   "use) / (nominal number of seats for that level)",
           .stability = Stability::kAlpha,
           .labels = kLevel,
           .buckets = {0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6}})),
      read_vs_write(r.Histograms(
          {.name = "apiserver_flowcontrol_read_vs_write_current_requests",
           .help = "Observations, at the end of every nanosecond, of the number of requests (as a fraction of the "
                   "relevant limit) waiting or in regular stage of execution",
           .stability = Stability::kAlpha,
           .labels = {"phase", "request_kind"},
           .buckets = {0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}})) {}

FlowMetrics::FlowMetrics(MetricFamilies& f, std::string_view level, std::string_view flow)
    : dispatched(f.dispatched, Values(level, flow)),
      rejected_concurrency_limit(f.rejected, Values(level, flow, "concurrency-limit")),
      rejected_queue_full(f.rejected, Values(level, flow, "queue-full")),
      rejected_time_out(f.rejected, Values(level, flow, "time-out")),
      inqueue_requests(f.inqueue_requests, Values(level, flow)),
      inqueue_seats(f.inqueue_seats, Values(level, flow)),
      executing_requests(f.executing_requests, Values(level, flow)),
      executing_seats(f.executing_seats, Values(level, flow)),
      queue_length_after_enqueue(f.queue_length_after_enqueue, Values(level, flow)),
      wait_executed(f.wait_duration, Values(level, flow, "true")),
      wait_rejected(f.wait_duration, Values(level, flow, "false")),
      execution_regular(f.execution_duration, Values(level, flow, "regular")),
      execution_watch(f.execution_duration, Values(level, flow, "watch")),
      estimated_seats(f.estimated_seats, Values(level, flow)),
      watch_count_samples(f.watch_count_samples, Values(level, flow)) {}

LevelMetrics::LevelMetrics(MetricFamilies& f, std::string_view level)
    : nominal_limit(f.nominal_limit, Values(level)),
      lower_limit(f.lower_limit, Values(level)),
      upper_limit(f.upper_limit, Values(level)),
      current_limit(f.current_limit, Values(level)),
      demand_high_watermark(f.demand_high_watermark, Values(level)),
      demand_average(f.demand_average, Values(level)),
      demand_deviation(f.demand_deviation, Values(level)),
      demand_smoothed(f.demand_smoothed, Values(level)),
      target(f.target, Values(level)),
      current_r(f.current_r, Values(level)),
      dispatch_r(f.dispatch_r, Values(level)),
      latest_s(f.latest_s, Values(level)),
      next_s_min(f.next_s_bounds, Values(level, "min")),
      next_s_max(f.next_s_bounds, Values(level, "max")),
      next_discounted_s_min(f.next_discounted_s_bounds, Values(level, "min")),
      next_discounted_s_max(f.next_discounted_s_bounds, Values(level, "max")),
      requests_waiting(f.request_utilization.With({"waiting", level})),
      requests_executing(f.request_utilization.With({"executing", level})),
      seats_executing(f.seat_utilization.With({level, "executing"})),
      demand(f.demand.With({level})) {}

}  // namespace keelson::flowcontrol
