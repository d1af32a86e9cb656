#include "storage/metrics.h"

#include <utility>
#include <vector>

namespace keelson::storage {
namespace {

using telemetry::MetricOptions;
using telemetry::Stability;

MetricOptions Of(std::string_view name, std::string_view help, std::vector<std::string_view> labels,
                 std::vector<double> buckets = {}, Stability stability = Stability::kAlpha) {
  return {
      .name = name, .help = help, .stability = stability, .labels = std::move(labels), .buckets = std::move(buckets)};
}

}  // namespace

StorageMetrics::StorageMetrics(telemetry::MetricsRegistry& registry)
    : request_duration(registry.Histograms(
          Of("etcd_request_duration_seconds", "Etcd request latency in seconds for each operation and object type.",
             {"operation", "group", "resource"},
             {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}))),
      requests(registry.Counters(Of("etcd_requests_total", "Etcd request counts for each operation and object type.",
                                    {"operation", "group", "resource"}))),
      request_errors(registry.Counters(Of("etcd_request_errors_total",
                                          "Etcd failed request counts for each operation and object type.",
                                          {"operation", "group", "resource"}))),
      events_received(registry.Counters(Of("apiserver_storage_events_received_total",
                                           "Number of etcd events received split by kind.", {"group", "resource"}, {},
                                           Stability::kBeta))),
      bookmarks(registry.Counters(Of("etcd_bookmark_total",
                                     "Number of etcd bookmarks (progress notify events) split by kind.",
                                     {"group", "resource"}))),
      lease_objects(
          registry.NewHistogram(Of("etcd_lease_object_counts", "Number of objects attached to a single etcd lease.", {},
                                   {10, 50, 100, 500, 1000, 2500, 5000}))),
      lists(registry.Counters(
          Of("apiserver_storage_list_total", "Number of LIST requests served from storage", {"group", "resource"}))),
      list_fetched(registry.Counters(Of("apiserver_storage_list_fetched_objects_total",
                                        "Number of objects read from storage in the course of serving a LIST request",
                                        {"group", "resource"}))),
      list_evaluated(registry.Counters(
          Of("apiserver_storage_list_evaluated_objects_total",
             "Number of objects tested in the course of serving a LIST request from storage", {"group", "resource"}))),
      list_returned(
          registry.Counters(Of("apiserver_storage_list_returned_objects_total",
                               "Number of objects returned for a LIST request from storage", {"group", "resource"}))),
      decode_errors(
          registry.Counters(Of("apiserver_storage_decode_errors_total",
                               "Number of stored object decode errors split by object type", {"group", "resource"}))),
      objects_deprecated(registry.Gauges(
          Of("apiserver_storage_objects",
             "(Deprecated since 1.34.0) [DEPRECATED, consider using apiserver_resource_objects instead] Number of "
             "stored objects at the time of last check split by kind. In case of a fetching error, the value will be "
             "-1.",
             {"resource"}, {}, Stability::kStable))),
      objects(registry.Gauges(Of("apiserver_resource_objects",
                                 "Number of stored objects at the time of last check split by kind. In case of a "
                                 "fetching error, the value will be -1.",
                                 {"group", "resource"}))),
      size_estimate(registry.Gauges(
          Of("apiserver_resource_size_estimate_bytes",
             "Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of "
             "serialized objects. In case of a fetching error, the value will be -1.",
             {"group", "resource"}))),
      read_wait(registry.Histograms(Of("apiserver_watch_cache_read_wait_seconds",
                                       "Histogram of time spent waiting for a watch cache to become fresh.",
                                       {"group", "resource"},
                                       {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3}))),
      consistency_checks(registry.Counters(Of("apiserver_storage_consistency_checks_total",
                                              "Counter for status of consistency checks between etcd and watch cache",
                                              {"group", "resource", "status"}))) {}

void ResourceMetrics::Requested(std::string_view operation, std::chrono::steady_clock::time_point begun, bool ok) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  all_.request_duration.With({operation, resource_.group, resource_.resource}).Observe(took.count());
  all_.requests.With({operation, resource_.group, resource_.resource}).Inc();
  if (!ok) all_.request_errors.With({operation, resource_.group, resource_.resource}).Inc();
}
void ResourceMetrics::EventsReceived(std::size_t count) {
  if (count > 0) all_.events_received.With({resource_.group, resource_.resource}).Add(count);
}
void ResourceMetrics::Bookmark() { all_.bookmarks.With({resource_.group, resource_.resource}).Inc(); }
void ResourceMetrics::Listed(std::size_t fetched, std::size_t evaluated, std::size_t returned) {
  all_.lists.With({resource_.group, resource_.resource}).Inc();
  all_.list_fetched.With({resource_.group, resource_.resource}).Add(fetched);
  all_.list_evaluated.With({resource_.group, resource_.resource}).Add(evaluated);
  all_.list_returned.With({resource_.group, resource_.resource}).Add(returned);
}
void ResourceMetrics::DecodeError() { all_.decode_errors.With({resource_.group, resource_.resource}).Inc(); }
void ResourceMetrics::Counted(std::int64_t objects, std::optional<std::int64_t> bytes) {
  all_.objects_deprecated.With({resource_.ToString()}).Set(static_cast<double>(objects));
  all_.objects.With({resource_.group, resource_.resource}).Set(static_cast<double>(objects));
  if (bytes) all_.size_estimate.With({resource_.group, resource_.resource}).Set(static_cast<double>(*bytes));
}
void ResourceMetrics::ConsistencyChecked(std::string_view status) {
  all_.consistency_checks.With({resource_.group, resource_.resource, status}).Inc();
}

}  // namespace keelson::storage
