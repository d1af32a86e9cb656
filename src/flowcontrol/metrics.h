// Metrics of priority and fairness, by upstream's names. A series is looked up when it is first used and then kept, so
// that a request costs only atomic operations and /metrics shows no series that nothing was counted in.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "telemetry/metrics.h"

namespace keelson::flowcontrol {

// One series of a family, made on first use. Thread safety: all members from any thread.
template <class T>
class LazySeries {
 public:
  LazySeries(telemetry::MetricVec<T>& family, std::vector<std::string> labels)
      : family_(family), labels_(std::move(labels)) {}
  T* operator->() { return &get(); }
  T& get() {
    T* known = series_.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    const std::vector<std::string_view> values(labels_.begin(), labels_.end());
    T& made = family_.With(std::span<const std::string_view>(values));
    series_.store(&made, std::memory_order_release);
    return made;
  }

 private:
  telemetry::MetricVec<T>& family_;
  const std::vector<std::string> labels_;
  std::atomic<T*> series_{nullptr};
};
using LazyCounter = LazySeries<telemetry::Counter>;
using LazyGauge = LazySeries<telemetry::Gauge>;
using LazyHistogram = LazySeries<telemetry::Histogram>;

struct MetricFamilies;

// Series of one flow schema in one priority level.
struct FlowMetrics {
  FlowMetrics(MetricFamilies& families, std::string_view priority_level, std::string_view flow_schema);
  LazyCounter dispatched;
  LazyCounter rejected_concurrency_limit;
  LazyCounter rejected_queue_full;
  LazyCounter rejected_time_out;
  LazyGauge inqueue_requests;
  LazyGauge inqueue_seats;
  LazyGauge executing_requests;
  LazyGauge executing_seats;
  LazyHistogram queue_length_after_enqueue;
  LazyHistogram wait_executed;
  LazyHistogram wait_rejected;
  LazyHistogram execution_regular;
  LazyHistogram execution_watch;
  LazyHistogram estimated_seats;
  LazyHistogram watch_count_samples;
};

// Series of one priority level.
struct LevelMetrics {
  LevelMetrics(MetricFamilies& families, std::string_view priority_level);
  LazyGauge nominal_limit;
  LazyGauge lower_limit;
  LazyGauge upper_limit;
  LazyGauge current_limit;
  LazyGauge demand_high_watermark;
  LazyGauge demand_average;
  LazyGauge demand_deviation;
  LazyGauge demand_smoothed;
  LazyGauge target;
  LazyGauge current_r;
  LazyGauge dispatch_r;
  LazyGauge latest_s;
  LazyGauge next_s_min;
  LazyGauge next_s_max;
  LazyGauge next_discounted_s_min;
  LazyGauge next_discounted_s_max;
  // Shown from the start: they count time.
  telemetry::Histogram& requests_waiting;
  telemetry::Histogram& requests_executing;
  telemetry::Histogram& seats_executing;
  telemetry::Histogram& demand;
};

struct MetricFamilies {
  explicit MetricFamilies(telemetry::MetricsRegistry& registry);  // must outlive this
  telemetry::CounterVec& dispatched;
  telemetry::CounterVec& rejected;
  telemetry::GaugeVec& inqueue_requests;
  telemetry::GaugeVec& inqueue_seats;
  telemetry::GaugeVec& executing_requests;
  telemetry::GaugeVec& executing_seats;
  telemetry::HistogramVec& queue_length_after_enqueue;
  telemetry::HistogramVec& wait_duration;
  telemetry::HistogramVec& execution_duration;
  telemetry::HistogramVec& estimated_seats;
  telemetry::HistogramVec& watch_count_samples;
  telemetry::GaugeVec& nominal_limit;
  telemetry::GaugeVec& lower_limit;
  telemetry::GaugeVec& upper_limit;
  telemetry::GaugeVec& current_limit;
  telemetry::GaugeVec& demand_high_watermark;
  telemetry::GaugeVec& demand_average;
  telemetry::GaugeVec& demand_deviation;
  telemetry::GaugeVec& demand_smoothed;
  telemetry::GaugeVec& target;
  telemetry::GaugeVec& fair_fraction;
  telemetry::GaugeVec& current_r;
  telemetry::GaugeVec& dispatch_r;
  telemetry::GaugeVec& latest_s;
  telemetry::GaugeVec& next_s_bounds;
  telemetry::GaugeVec& next_discounted_s_bounds;
  telemetry::HistogramVec& request_utilization;
  telemetry::HistogramVec& seat_utilization;
  telemetry::HistogramVec& demand;
  telemetry::HistogramVec& read_vs_write;
};

}  // namespace keelson::flowcontrol
