// The figures of encryption at rest, under upstream's names. Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "telemetry/metrics.h"

namespace keelson::storage {

class TransformMetrics {
 public:
  // `server_id` is hashed into the labels that distinguish servers.
  TransformMetrics(telemetry::MetricsRegistry& registry, std::string_view server_id);

  // `type`: from_storage or to_storage; `prefix`: of the provider, "identity", or "unknown".
  void Transformed(std::string_view resource, std::string_view type, std::string_view prefix,
                   std::chrono::nanoseconds took, bool ok);
  void CacheMiss();
  void DataKeyGenerated(std::chrono::nanoseconds took);
  void CacheFill(double fraction);
  void Arrival(std::string_view type);  // of a KMS v1 transformation
  void KMSCall(std::string_view provider, std::string_view method, std::string_view code,
               std::chrono::nanoseconds took);
  void KeyIDUsed(std::string_view type, std::string_view provider, std::string_view key_id, std::int64_t now);
  void KeyIDFromStatus(std::string_view provider, std::string_view key_id, std::int64_t now);
  void InvalidKeyIDFromStatus(std::string_view provider, std::string_view error);
  void CacheSize(std::string_view provider, std::size_t size);
  void Reloaded(bool ok, std::int64_t now);
  void ConfigInUse(std::string_view hash);

 private:
  const std::string server_;
  telemetry::HistogramVec& duration_;
  telemetry::CounterVec& operations_;
  telemetry::Counter& cache_misses_;
  telemetry::Histogram& key_generation_;
  telemetry::Counter& key_generation_failures_;
  telemetry::Gauge& cache_fill_;
  telemetry::HistogramVec& arrival_;
  telemetry::HistogramVec& kms_latency_;
  telemetry::CounterVec& key_id_;
  telemetry::GaugeVec& key_id_last_;
  telemetry::GaugeVec& key_id_status_;
  telemetry::CounterVec& invalid_key_id_;
  telemetry::GaugeVec& cache_size_;
  telemetry::CounterVec& reloads_;
  telemetry::GaugeVec& reload_last_;
  telemetry::GaugeVec& config_info_;
  std::atomic<std::int64_t> last_arrival_[2];  // steady nanoseconds
  std::mutex config_mutex_;
  std::string config_hash_;  // guarded
};

// "sha256:<hex>", or "" of nothing.
std::string HashIfNotEmpty(std::string_view text);

}  // namespace keelson::storage
