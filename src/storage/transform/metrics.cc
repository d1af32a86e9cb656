#include "storage/transform/metrics.h"

#include <openssl/evp.h>

#include "base/strings.h"

namespace keelson::storage {
namespace {

using telemetry::ExponentialBuckets;
using telemetry::MetricOptions;
using telemetry::Stability;

MetricOptions Of(std::string_view name, std::string_view help, std::vector<std::string_view> labels = {},
                 std::vector<double> buckets = {}) {
  return {.name = name,
          .help = help,
          .stability = Stability::kAlpha,
          .labels = std::move(labels),
          .buckets = std::move(buckets)};
}

double Seconds(std::chrono::nanoseconds took) { return std::chrono::duration<double>(took).count(); }

}  // namespace

std::string HashIfNotEmpty(std::string_view text) {
  if (text.empty()) return "";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  return "sha256:" + base::HexEncode({reinterpret_cast<const char*>(digest), size});
}

TransformMetrics::TransformMetrics(telemetry::MetricsRegistry& registry, std::string_view server_id)
    : server_(HashIfNotEmpty(server_id)),
      duration_(
          registry.Histograms(Of("apiserver_storage_transformation_duration_seconds",
                                 "Latencies in seconds of value transformation operations.",
                                 {"transformation_type", "transformer_prefix"}, ExponentialBuckets(5e-6, 2, 25)))),
      operations_(registry.Counters(Of("apiserver_storage_transformation_operations_total",
                                       "Total number of transformations, by outcome: 'OK', or what went wrong.",
                                       {"resource", "transformation_type", "transformer_prefix", "status"}))),
      cache_misses_(registry.NewCounter(Of("apiserver_storage_envelope_transformation_cache_misses_total",
                                           "Total number of cache misses while accessing key decryption key(KEK)."))),
      key_generation_(
          registry.NewHistogram(Of("apiserver_storage_data_key_generation_duration_seconds",
                                   "Latencies in seconds of data encryption key(DEK) generation operations.", {},
                                   ExponentialBuckets(5e-6, 2, 14)))),
      key_generation_failures_(
          registry.NewCounter(Of("apiserver_storage_data_key_generation_failures_total",
                                 "Total number of failed data encryption key(DEK) generation operations."))),
      cache_fill_(registry.NewGauge(Of("apiserver_envelope_encryption_dek_cache_fill_percent",
                                       "Percent of the cache slots currently occupied by cached DEKs."))),
      arrival_(registry.Histograms(Of("apiserver_envelope_encryption_dek_cache_inter_arrival_time_seconds",
                                      "Time (in seconds) of inter arrival of transformation requests.",
                                      {"transformation_type"}, ExponentialBuckets(60, 2, 10)))),
      kms_latency_(registry.Histograms(Of("apiserver_envelope_encryption_kms_operations_latency_seconds",
                                          "KMS operation duration with gRPC error code status total.",
                                          {"provider_name", "method_name", "grpc_status_code"},
                                          ExponentialBuckets(0.0001, 2, 20)))),
      key_id_(registry.Counters(
          Of("apiserver_envelope_encryption_key_id_hash_total",
             "Number of times a keyID is used split by transformation type, provider, and apiserver identity.",
             {"transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"}))),
      key_id_last_(registry.Gauges(Of("apiserver_envelope_encryption_key_id_hash_last_timestamp_seconds",
                                      "The last time in seconds when a keyID was used.",
                                      {"transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"}))),
      key_id_status_(registry.Gauges(Of("apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds",
                                        "The last time in seconds when a keyID was returned by the Status RPC call.",
                                        {"provider_name", "key_id_hash", "apiserver_id_hash"}))),
      invalid_key_id_(
          registry.Counters(Of("apiserver_envelope_encryption_invalid_key_id_from_status_total",
                               "Number of times an invalid keyID is returned by the Status RPC call split by error.",
                               {"provider_name", "error"}))),
      cache_size_(registry.Gauges(Of("apiserver_envelope_encryption_dek_source_cache_size",
                                     "Number of records in data encryption key (DEK) source cache: about as many calls "
                                     "to the KMS plugin as a restart would make.",
                                     {"provider_name"}))),
      reloads_(registry.Counters(Of("apiserver_encryption_config_controller_automatic_reloads_total",
                                    "Total number of reload successes and failures of encryption configuration split "
                                    "by apiserver identity.",
                                    {"status", "apiserver_id_hash"}))),
      reload_last_(
          registry.Gauges(Of("apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds",
                             "Timestamp of the last successful or failed automatic reload of encryption configuration "
                             "split by apiserver identity.",
                             {"status", "apiserver_id_hash"}))),
      config_info_(registry.Gauges(Of("apiserver_encryption_config_controller_last_config_info",
                                      "1 for the hash of the encryption configuration in use.",
                                      {"apiserver_id_hash", "hash"}))) {}

void TransformMetrics::Transformed(std::string_view resource, std::string_view type, std::string_view prefix,
                                   std::chrono::nanoseconds took, bool ok) {
  operations_.With({resource, type, prefix, ok ? "OK" : "unknown-non-grpc"}).Inc();
  if (ok) duration_.With({type, prefix}).Observe(Seconds(took));
}
void TransformMetrics::CacheMiss() { cache_misses_.Inc(); }
void TransformMetrics::DataKeyGenerated(std::chrono::nanoseconds took) { key_generation_.Observe(Seconds(took)); }
void TransformMetrics::CacheFill(double fraction) { cache_fill_.Set(fraction); }

void TransformMetrics::Arrival(std::string_view type) {
  const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::int64_t before = last_arrival_[type == "to_storage"].exchange(now, std::memory_order_relaxed);
  if (before != 0) arrival_.With({type}).Observe(static_cast<double>(now - before) / 1e9);
}

void TransformMetrics::KMSCall(std::string_view provider, std::string_view method, std::string_view code,
                               std::chrono::nanoseconds took) {
  kms_latency_.With({provider, method, code}).Observe(Seconds(took));
}
void TransformMetrics::KeyIDUsed(std::string_view type, std::string_view provider, std::string_view key_id,
                                 std::int64_t now) {
  const std::string hash = HashIfNotEmpty(key_id);
  key_id_.With({type, provider, hash, server_}).Inc();
  key_id_last_.With({type, provider, hash, server_}).Set(static_cast<double>(now));
}
void TransformMetrics::KeyIDFromStatus(std::string_view provider, std::string_view key_id, std::int64_t now) {
  key_id_status_.With({provider, HashIfNotEmpty(key_id), server_}).Set(static_cast<double>(now));
}
void TransformMetrics::InvalidKeyIDFromStatus(std::string_view provider, std::string_view error) {
  invalid_key_id_.With({provider, error}).Inc();
}
void TransformMetrics::CacheSize(std::string_view provider, std::size_t size) {
  cache_size_.With({provider}).Set(static_cast<double>(size));
}
void TransformMetrics::Reloaded(bool ok, std::int64_t now) {
  const std::string_view status = ok ? "success" : "failure";
  reloads_.With({status, server_}).Inc();
  reload_last_.With({status, server_}).Set(static_cast<double>(now));
}
void TransformMetrics::ConfigInUse(std::string_view hash) {
  std::lock_guard lock(config_mutex_);
  if (!config_hash_.empty()) config_info_.With({server_, config_hash_}).Set(0);
  config_hash_ = hash;
  config_info_.With({server_, hash}).Set(1);
}

}  // namespace keelson::storage
