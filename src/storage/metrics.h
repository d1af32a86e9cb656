// The figures of storage, under upstream's names: requests to the store, lists, events, what could not be read.
// Thread safety: all members from any thread. Ownership: series live in the registry.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meta/group_version.h"
#include "telemetry/metrics.h"

namespace keelson::storage {

class StorageMetrics {
 public:
  explicit StorageMetrics(telemetry::MetricsRegistry& registry);

  telemetry::HistogramVec& request_duration;  // operation, group, resource
  telemetry::CounterVec& requests;
  telemetry::CounterVec& request_errors;
  telemetry::CounterVec& events_received;  // group, resource; so are all below unless told otherwise
  telemetry::CounterVec& bookmarks;
  telemetry::Histogram& lease_objects;
  telemetry::CounterVec& lists;
  telemetry::CounterVec& list_fetched;
  telemetry::CounterVec& list_evaluated;
  telemetry::CounterVec& list_returned;
  telemetry::CounterVec& decode_errors;
  telemetry::GaugeVec& objects_deprecated;  // resource.group
  telemetry::GaugeVec& objects;
  telemetry::GaugeVec& size_estimate;
  telemetry::HistogramVec& read_wait;
  telemetry::CounterVec& consistency_checks;  // group, resource, status
};

// The same for one resource.
class ResourceMetrics {
 public:
  ResourceMetrics(StorageMetrics& all, meta::GroupResource resource) : all_(all), resource_(std::move(resource)) {}

  // A request to the store that began at `begun`: get, list, create, update, delete, listWithCount, listOnlyKeys.
  void Requested(std::string_view operation, std::chrono::steady_clock::time_point begun, bool ok);
  void EventsReceived(std::size_t count);
  void Bookmark();
  void Listed(std::size_t fetched, std::size_t evaluated, std::size_t returned);
  void DecodeError();
  // -1: unknown. No bytes: they are not estimated (the gate SizeBasedListCostEstimate is off).
  void Counted(std::int64_t objects, std::optional<std::int64_t> bytes);
  void ConsistencyChecked(std::string_view status);  // success, failure, error
  telemetry::Histogram& read_wait() { return all_.read_wait.With({resource_.group, resource_.resource}); }

  StorageMetrics& all() { return all_; }

 private:
  StorageMetrics& all_;
  const meta::GroupResource resource_;
};

}  // namespace keelson::storage
