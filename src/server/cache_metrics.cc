#include "server/cache_metrics.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

namespace keelson::server {
namespace {

using cacher::Cacher;
using cacher::CacherMetrics;
using telemetry::MetricType;
using Count = std::atomic<std::uint64_t> CacherMetrics::*;

telemetry::MetricOptions Family(std::string_view name, std::string_view help, std::vector<std::string_view> labels) {
  return {.name = name, .help = help, .stability = telemetry::Stability::kAlpha, .labels = std::move(labels)};
}

std::uint64_t Read(const Cacher& cache, Count count) {
  return (cache.metrics().*count).load(std::memory_order_relaxed);
}

class CacheExposition {
 public:
  CacheExposition(std::span<const NamedCache> caches, telemetry::Exposition& out) : caches_(caches), out_(out) {}

  void Counter(std::string_view name, std::string_view help, Count value) const {
    const auto family = Family(name, help, {"group", "resource"});
    for (const auto& [group, resource, cache] : caches_) {
      if (const std::uint64_t count = Read(cache, value); count > 0)
        out_.Write(family, MetricType::kCounter, {group, resource}, static_cast<double>(count));
    }
  }

  void Figure(std::string_view name, std::string_view help, MetricType type,
              const std::function<std::uint64_t(const Cacher& cache)>& value) const {
    const auto family = Family(name, help, {"group", "resource"});
    for (const auto& [group, resource, cache] : caches_)
      out_.Write(family, type, {group, resource}, static_cast<double>(value(cache)));
  }

  // Watches that are open now; nothing where none was ever opened.
  void ShardedWatches() const {
    const auto family =
        Family("apiserver_watch_shards_total", "Number of active sharded watch connections broken by resource type.",
               {"group", "resource"});
    for (const auto& [group, resource, cache] : caches_) {
      const std::uint64_t closed = Read(cache, &CacherMetrics::sharded_watches_closed);
      const std::uint64_t opened = std::max(Read(cache, &CacherMetrics::sharded_watches_opened), closed);
      if (opened > 0) out_.Write(family, MetricType::kGauge, {group, resource}, static_cast<double>(opened - closed));
    }
  }

  void ByIndex(std::string_view name, std::string_view help, Count all, Count indexed) const {
    const auto family = Family(name, help, {"group", "resource", "index"});
    for (const auto& [group, resource, cache] : caches_) {
      const std::uint64_t with = Read(cache, indexed);
      const std::uint64_t total = std::max(Read(cache, all), with);
      if (total > with)
        out_.Write(family, MetricType::kCounter, {group, resource, ""}, static_cast<double>(total - with));
      if (with > 0)
        out_.Write(family, MetricType::kCounter, {group, resource, "f:spec.nodeName"}, static_cast<double>(with));
    }
  }

  void ConsistentReads() const {
    const auto family =
        Family("apiserver_watch_cache_consistent_read_total", "Counter for consistent reads from cache.",
               {"group", "resource", "success", "fallback"});
    for (const NamedCache& one : caches_) {
      const std::uint64_t failed = Read(one.cache, &CacherMetrics::consistent_read_failures);
      const std::uint64_t fell = Read(one.cache, &CacherMetrics::consistent_read_fallbacks);
      const std::uint64_t fell_failed =
          std::min(Read(one.cache, &CacherMetrics::consistent_read_fallback_failures), fell);
      const std::uint64_t all = std::max(Read(one.cache, &CacherMetrics::consistent_reads), failed + fell);
      const auto write = [&](std::string_view success, std::string_view fallback, std::uint64_t count) {
        if (count == 0) return;
        out_.Write(family, MetricType::kCounter, {one.group, one.resource, success, fallback},
                   static_cast<double>(count));
      };
      write("false", "false", failed);
      write("false", "true", fell_failed);
      write("true", "false", all - failed - fell);
      write("true", "true", fell - fell_failed);
    }
  }

 private:
  const std::span<const NamedCache> caches_;
  telemetry::Exposition& out_;
};

// Sizes and positions, as they are now.
void ExposeFigures(const CacheExposition& write) {
  constexpr std::uint64_t kDigits = 1'000'000'000'000'000;
  write.Figure("apiserver_watch_cache_resource_version",
               "Current resource version of watch cache broken by resource type. This is truncated to the 15 least "
               "significant digits.",
               MetricType::kGauge, [](const Cacher& cache) { return cache.resource_version() % kDigits; });
  write.Figure("watch_cache_capacity", "Total capacity of watch cache broken by resource type.", MetricType::kGauge,
               [](const Cacher& cache) { return cache.figures().ring_capacity; });
  write.Figure("watch_cache_capacity_decrease_total",
               "Total number of watch cache capacity decrease events broken by resource type.", MetricType::kCounter,
               [](const Cacher& cache) { return cache.figures().capacity_decreases; });
  write.Figure("watch_cache_capacity_increase_total",
               "Total number of watch cache capacity increase events broken by resource type.", MetricType::kCounter,
               [](const Cacher& cache) { return cache.figures().capacity_increases; });
  write.Figure("keelson_watch_cache_watchers", "Watches that are open, by resource.", MetricType::kGauge,
               [](const Cacher& cache) { return cache.figures().watchers; });
  write.Figure("keelson_watch_cache_history_bytes", "Bytes of superseded objects kept for watchers and exact reads.",
               MetricType::kGauge, [](const Cacher& cache) { return cache.figures().history_bytes; });
}

}  // namespace

void ExposeCaches(std::span<const NamedCache> caches, telemetry::Exposition& out) {
  const CacheExposition write(caches, out);
  write.ByIndex("apiserver_cache_list_fetched_objects_total",
                "Number of objects read from watch cache in the course of serving a LIST request",
                &CacherMetrics::list_fetched_objects, &CacherMetrics::index_list_fetched_objects);
  write.Counter("apiserver_cache_list_returned_objects_total",
                "Number of objects returned for a LIST request from watch cache",
                &CacherMetrics::list_returned_objects);
  write.ByIndex("apiserver_cache_list_total", "Number of LIST requests served from watch cache", &CacherMetrics::lists,
                &CacherMetrics::index_lists);
  write.Counter("apiserver_init_events_total",
                "Counter of init events processed in watch cache broken by resource type.",
                &CacherMetrics::init_events);
  write.Counter("apiserver_terminated_watchers_total",
                "Counter of watchers closed due to unresponsiveness broken by resource type.",
                &CacherMetrics::terminated_watchers);
  write.ConsistentReads();
  write.Counter("apiserver_watch_cache_events_dispatched_total",
                "Counter of events dispatched in watch cache broken by resource type.",
                &CacherMetrics::events_dispatched);
  write.Counter("apiserver_watch_cache_events_received_total",
                "Counter of events received in watch cache broken by resource type.", &CacherMetrics::events_received);
  write.Counter("apiserver_watch_cache_initializations_total",
                "Counter of watch cache initializations broken by resource type.", &CacherMetrics::initializations);
  write.Counter("apiserver_watch_filtered_events_total",
                "Counter of events filtered out by shard selector during watch dispatch, broken by resource type.",
                &CacherMetrics::shard_filtered_events);
  write.ShardedWatches();
  ExposeFigures(write);
}

void ExposeEncodedForms(const storage::EncodedForms& forms, telemetry::Exposition& out) {
  const auto plain = [&](std::string_view name, std::string_view help, MetricType type, double value) {
    out.Write({.name = name, .help = help}, type, {}, value);
  };
  plain("keelson_encoded_forms_bytes", "Memory of encoded forms (JSON, table row, metadata only) of objects.",
        MetricType::kGauge, static_cast<double>(forms.bytes()));
  plain("keelson_encoded_forms_dropped_total", "Encoded forms given up to stay within --encoded-cache-mb.",
        MetricType::kCounter, static_cast<double>(forms.dropped()));
  plain("keelson_encoded_forms_hits_total", "Encoded forms that were found in the cache.", MetricType::kCounter,
        static_cast<double>(forms.hits()));
  plain("keelson_encoded_forms_max_bytes", "Limit of --encoded-cache-mb.", MetricType::kGauge,
        static_cast<double>(forms.bytes_max()));
  plain("keelson_encoded_forms_misses_total", "Encoded forms that had to be made.", MetricType::kCounter,
        static_cast<double>(forms.misses()));
}

}  // namespace keelson::server
