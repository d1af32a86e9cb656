#include <benchmark/benchmark.h>

#include <string_view>

#include "telemetry/log.h"
#include "telemetry/metrics.h"

namespace keelson::telemetry {
namespace {

void BM_CounterWithNineLabels(benchmark::State& state) {
  MetricsRegistry metrics;
  auto& total = metrics.Counters({.name = "t", .help = "T.", .labels = {"a", "b", "c", "d", "e", "f", "g", "h", "i"}});
  for (auto _ : state) total.With({"GET", "", "apps", "v1", "deployments", "", "namespace", "apiserver", "200"}).Inc();
}
BENCHMARK(BM_CounterWithNineLabels)->Threads(1)->Threads(2);

void BM_CounterKept(benchmark::State& state) {
  MetricsRegistry metrics;
  Counter& counter = metrics.NewCounter({.name = "t", .help = "T."});
  for (auto _ : state) counter.Inc();
}
BENCHMARK(BM_CounterKept);

void BM_HistogramObserve(benchmark::State& state) {
  MetricsRegistry metrics;
  Histogram& histogram = metrics.NewHistogram({.name = "h", .help = "H.", .buckets = ExponentialBuckets(0.001, 2, 20)});
  double value = 0.0001;
  for (auto _ : state) {
    histogram.Observe(value);
    value = value > 100 ? 0.0001 : value * 1.1;
  }
}
BENCHMARK(BM_HistogramObserve);

void BM_LogBelowLevel(benchmark::State& state) {
  for (auto _ : state) log::V(4).Info("Said", "number", 1, "text", "x");
}
BENCHMARK(BM_LogBelowLevel);

void BM_LogLine(benchmark::State& state) {
  const log::ScopedSink sink([](log::Severity, std::string_view line) { benchmark::DoNotOptimize(line.data()); });
  for (auto _ : state)
    log::Info("HTTP", "verb", "GET", "URI", "/api/v1/pods", "latency", std::chrono::microseconds{50}, "resp", 200);
}
BENCHMARK(BM_LogLine);

}  // namespace
}  // namespace keelson::telemetry
