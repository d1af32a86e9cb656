// Metrics in Prometheus' text format: families of counters, gauges and histograms with labels.
//   auto& total = metrics.Counters({.name = "apiserver_request_total", .help = "...", .labels = {"code", "verb"}});
//   total.With({"200", "GET"}).Inc();
// With() is a lock-free lookup; keep the reference if the labels are fixed.
// Thread safety: every member from any thread. Incrementing and observing are single atomic operations; With() takes no
// lock for a series that exists; a new series takes its family's mutex. Ownership: the registry owns families and
// series; both live, at the same address, as long as the registry.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keelson::telemetry {

enum class Stability : std::uint8_t {
  kNone,
  kAlpha,
  kBeta,
  kStable
};  // kNone: no "[ALPHA] " in front of the help text
std::string_view ToString(Stability stability);  // "", "ALPHA", "BETA", "STABLE"
enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };

struct MetricOptions {
  std::string_view name;
  std::string_view help;
  Stability stability = Stability::kNone;
  std::vector<std::string_view> labels = {};  // names; With() takes the values in this order
  std::vector<double> buckets = {};           // histograms: upper bounds, ascending, without +Inf
};

class Counter {
 public:
  void Inc() { Add(1); }
  void Add(std::uint64_t n) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double delta) { value_.fetch_add(delta, std::memory_order_relaxed); }
  void Inc() { Add(1); }
  void Dec() { Add(-1); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);  // `bounds` must outlive this.

  void Observe(double value) { Observe(value, 1); }
  void Observe(double value, std::uint64_t times);
  std::uint64_t count() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  std::vector<std::uint64_t> Buckets()
      const;  // cumulative, the last is +Inf and equals the count read at the same time

 private:
  std::span<const double> bounds_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;  // one per bound and one for +Inf, not cumulative
  std::atomic<double> sum_{0};
};

using LabelValues = std::initializer_list<std::string_view>;

namespace internal {
class SeriesTable;
}

// Base of metric families of every type.
class Family {
 public:
  // More series than this in one family share one whose values are all "unexpected": a client must not be able to fill
  // memory by making up label values.
  static constexpr std::size_t kSeriesMax = 20'000;
  static constexpr std::size_t kValueBytesMax = 256;  // longer label values are cut

  virtual ~Family();
  const std::string& name() const { return name_; }
  const std::string& help() const { return help_; }
  Stability stability() const { return stability_; }
  MetricType type() const { return type_; }
  const std::vector<std::string>& labels() const { return labels_; }
  const std::vector<double>& buckets() const { return buckets_; }
  std::size_t series_count() const;

 protected:
  Family(const MetricOptions& options, MetricType type);
  std::string name_, help_;
  Stability stability_;
  MetricType type_;
  std::vector<std::string> labels_;
  std::vector<double> buckets_;
  void* Lookup(std::span<const std::string_view> values);
  virtual void* NewSeries() = 0;
  virtual void DeleteSeries(void* series) = 0;
  void DropAll();  // for the destructors of the typed families

 private:
  friend class MetricsRegistry;
  struct AllowList {
    std::size_t label;
    std::vector<std::string> values;
  };
  void* Insert(std::span<const std::string_view> values, std::uint64_t hash);

  std::unique_ptr<internal::SeriesTable> table_;
  std::vector<AllowList> allow_lists_;  // set before first use
  bool disabled_ = false;
};

template <class T>
class MetricVec final : public Family {
 public:
  MetricVec(const MetricOptions& options, MetricType type) : Family(options, type) {}
  ~MetricVec() override { DropAll(); }

  // The series with these label values, made on first use. REQUIRES: as many values as the family has labels.
  T& With(LabelValues values) { return With(std::span<const std::string_view>(values.begin(), values.size())); }
  T& With(std::span<const std::string_view> values) { return *static_cast<T*>(Lookup(values)); }
  T& Only() { return With({}); }  // REQUIRES: no labels.

 private:
  void* NewSeries() override {
    if constexpr (std::is_same_v<T, Histogram>) {
      return new Histogram(buckets());
    } else {
      return new T;
    }
  }
  void DeleteSeries(void* series) override { delete static_cast<T*>(series); }
};

using CounterVec = MetricVec<Counter>;
using GaugeVec = MetricVec<Gauge>;
using HistogramVec = MetricVec<Histogram>;

// Receives the values of a collector while the metrics are exposed.
class Exposition {
 public:
  virtual ~Exposition() = default;
  // Writes one series of a family without storage. Series of one family come one after another.
  virtual void Write(const MetricOptions& family, MetricType type, LabelValues values, double value) = 0;
};

class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // The family of that name, made on first use. REQUIRES: a family requested twice has the same type and labels both
  // times. A family without labels has its one series (and shows 0) from the start.
  CounterVec& Counters(const MetricOptions& options);
  GaugeVec& Gauges(const MetricOptions& options);
  HistogramVec& Histograms(const MetricOptions& options);
  Counter& NewCounter(const MetricOptions& options) { return Counters(options).Only(); }
  Gauge& NewGauge(const MetricOptions& options) { return Gauges(options).Only(); }
  Histogram& NewHistogram(const MetricOptions& options) { return Histograms(options).Only(); }

  // Called at every exposition, for values that live elsewhere (process, store, queues). Must not register families.
  void AddCollector(std::function<void(Exposition&)> collect);

  // --disabled-metrics and --allow-metric-labels. REQUIRES: before the families they name are made.
  void Disable(std::string_view name);
  void AllowLabelValues(std::string_view name, std::string_view label, std::vector<std::string> values);

  // Resets all counts: gauges are 0, and series with labels disappear until they are used again. Values of collectors
  // are not affected. Series keep their addresses.
  void Reset();

  // As text format 0.0.4: families by name, series by label values, labels by name. Families that would take the text
  // beyond kExposedBytesMax are left out, and a comment at the end says how many.
  static constexpr std::size_t kExposedBytesMax = 64 * 1024 * 1024;
  std::string Expose() const;
  std::vector<const Family*> Families() const;  // by name

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Numbers as Go's strconv 'g' with the shortest digits that read back the same: 1, 0.005, 1e+06, +Inf.
std::string FormatFloat(double value);

// Go's prometheus.ExponentialBuckets.
std::vector<double> ExponentialBuckets(double start, double factor, int count);

}  // namespace keelson::telemetry
