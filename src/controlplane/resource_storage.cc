#include "controlplane/resource_storage.h"

#include <algorithm>
#include <optional>

#include "cacher/cacher.h"
#include "storage/encoded_forms.h"
#include "storage/lease_manager.h"
#include "storage/metrics.h"
#include "storage/schema_codec.h"
#include "storage/storage_factory.h"
#include "storage/store.h"
#include "storage/stored_versions.h"
#include "storage/transform/encryption_at_rest.h"
#include "telemetry/log.h"

namespace keelson::controlplane {

struct ResourceStorage::Impl {
  struct Entry {
    const schema::Resource* resource;
    std::shared_ptr<const storage::ResourceCodec> codec;
    std::unique_ptr<storage::ResourceMetrics> metrics;  // null where nothing is counted
    std::unique_ptr<storage::Store> store;
    std::shared_ptr<cacher::Cacher> cacher;  // null where it is not cached
    std::shared_ptr<registry::Store> registry;
  };

  explicit Impl(StorageConfig config_in)
      : config(std::move(config_in)), forms(config.encoded_cache_bytes), history(config.history_bytes) {
    if (config.metrics != nullptr) metrics = std::make_unique<storage::StorageMetrics>(*config.metrics);
  }

  StorageConfig config;
  storage::EncodedForms forms;
  cacher::HistoryBudget history;
  std::unique_ptr<storage::StorageMetrics> metrics;
  std::map<kv::Store*, storage::LeaseManager> leases;  // of each store
  std::map<std::pair<std::string, std::string>, Entry> entries;

  // Of gates that are on by default.
  bool Enabled(std::string_view gate) const {
    return config.feature_enabled == nullptr || config.feature_enabled(gate);
  }
  kv::Store& StoreOf(const schema::Resource& resource) const {
    const auto found = config.kv_overrides.find(std::string(resource.group) + "/" + std::string(resource.plural));
    return found == config.kv_overrides.end() ? *config.kv : *found->second;
  }
  storage::LeaseManager& LeasesOf(kv::Store& store) {
    return leases
        .try_emplace(&store, store, *config.clock,
                     storage::LeaseOptions{.reuse_duration_seconds = config.lease_reuse_seconds,
                                           .objects = metrics ? &metrics->lease_objects : nullptr})
        .first->second;
  }
  bool Cached(const schema::Resource& resource) const {
    if (!config.watch_cache || resource.plural == "events") return false;
    const std::string name = meta::GroupResource{std::string(resource.group), std::string(resource.plural)}.ToString();
    return !config.uncached.contains(name);
  }
  void Expose(telemetry::Exposition& out) const;
};

// What the caches count themselves. Series of one family stand together, so each family walks all resources.
void ResourceStorage::Impl::Expose(telemetry::Exposition& out) const {
  using cacher::Cacher;
  using cacher::CacherMetrics;
  using telemetry::MetricType;
  using telemetry::Stability;
  const auto of = [](std::string_view name, std::string_view help, std::vector<std::string_view> labels = {}) {
    return telemetry::MetricOptions{
        .name = name, .help = help, .stability = Stability::kAlpha, .labels = std::move(labels)};
  };
  const auto counter = [&](std::string_view name, std::string_view help,
                           std::atomic<std::uint64_t> CacherMetrics::* const value) {
    const auto family = of(name, help, {"group", "resource"});
    for (const auto& [key, entry] : entries) {
      if (!entry.cacher) continue;
      const auto count = static_cast<double>((entry.cacher->metrics().*value).load(std::memory_order_relaxed));
      if (count > 0) out.Write(family, MetricType::kCounter, {key.first, key.second}, count);
    }
  };
  const auto figure = [&](std::string_view name, std::string_view help, MetricType type, auto value) {
    const auto family = of(name, help, {"group", "resource"});
    for (const auto& [key, entry] : entries) {
      if (entry.cacher) out.Write(family, type, {key.first, key.second}, static_cast<double>(value(*entry.cacher)));
    }
  };
  const auto by_index = [&](std::string_view name, std::string_view help,
                            std::atomic<std::uint64_t> CacherMetrics::* const all,
                            std::atomic<std::uint64_t> CacherMetrics::* const indexed) {
    const auto family = of(name, help, {"group", "resource", "index"});
    for (const auto& [key, entry] : entries) {
      if (!entry.cacher) continue;
      const auto with = (entry.cacher->metrics().*indexed).load(std::memory_order_relaxed);
      const auto total = std::max((entry.cacher->metrics().*all).load(std::memory_order_relaxed), with);
      if (total > with)
        out.Write(family, MetricType::kCounter, {key.first, key.second, ""}, static_cast<double>(total - with));
      if (with > 0)
        out.Write(family, MetricType::kCounter, {key.first, key.second, "f:spec.nodeName"}, static_cast<double>(with));
    }
  };
  by_index("apiserver_cache_list_fetched_objects_total",
           "Number of objects read from watch cache in the course of serving a LIST request",
           &CacherMetrics::list_fetched_objects, &CacherMetrics::index_list_fetched_objects);
  counter("apiserver_cache_list_returned_objects_total",
          "Number of objects returned for a LIST request from watch cache", &CacherMetrics::list_returned_objects);
  by_index("apiserver_cache_list_total", "Number of LIST requests served from watch cache", &CacherMetrics::lists,
           &CacherMetrics::index_lists);
  counter("apiserver_init_events_total", "Counter of init events processed in watch cache broken by resource type.",
          &CacherMetrics::init_events);
  counter("apiserver_terminated_watchers_total",
          "Counter of watchers closed due to unresponsiveness broken by resource type.",
          &CacherMetrics::terminated_watchers);
  const auto reads = of("apiserver_watch_cache_consistent_read_total", "Counter for consistent reads from cache.",
                        {"group", "resource", "success", "fallback"});
  for (const auto& [key, entry] : entries) {
    if (!entry.cacher) continue;
    const CacherMetrics& m = entry.cacher->metrics();
    const auto failed = m.consistent_read_failures.load(std::memory_order_relaxed);
    const auto fell = m.consistent_read_fallbacks.load(std::memory_order_relaxed);
    const auto fell_failed = std::min(m.consistent_read_fallback_failures.load(std::memory_order_relaxed), fell);
    const auto all = std::max(m.consistent_reads.load(std::memory_order_relaxed), failed + fell);
    const auto write = [&](const char* success, const char* fallback, std::uint64_t count) {
      if (count > 0)
        out.Write(reads, MetricType::kCounter, {key.first, key.second, success, fallback}, static_cast<double>(count));
    };
    write("false", "false", failed);
    write("false", "true", fell_failed);
    write("true", "false", all - failed - fell);
    write("true", "true", fell - fell_failed);
  }
  counter("apiserver_watch_cache_events_dispatched_total",
          "Counter of events dispatched in watch cache broken by resource type.", &CacherMetrics::events_dispatched);
  counter("apiserver_watch_cache_events_received_total",
          "Counter of events received in watch cache broken by resource type.", &CacherMetrics::events_received);
  counter("apiserver_watch_cache_initializations_total",
          "Counter of watch cache initializations broken by resource type.", &CacherMetrics::initializations);
  constexpr std::uint64_t kDigits = 1'000'000'000'000'000;
  figure("apiserver_watch_cache_resource_version",
         "Current resource version of watch cache broken by resource type. This is truncated to the 15 least "
         "significant digits.",
         MetricType::kGauge, [](const Cacher& cache) { return cache.resource_version() % kDigits; });
  figure("watch_cache_capacity", "Total capacity of watch cache broken by resource type.", MetricType::kGauge,
         [](const Cacher& cache) { return cache.figures().ring_capacity; });
  figure("watch_cache_capacity_decrease_total",
         "Total number of watch cache capacity decrease events broken by resource type.", MetricType::kCounter,
         [](const Cacher& cache) { return cache.figures().capacity_decreases; });
  figure("watch_cache_capacity_increase_total",
         "Total number of watch cache capacity increase events broken by resource type.", MetricType::kCounter,
         [](const Cacher& cache) { return cache.figures().capacity_increases; });
  figure("keelson_watch_cache_watchers", "Watches that are open, by resource.", MetricType::kGauge,
         [](const Cacher& cache) { return cache.figures().watchers; });
  figure("keelson_watch_cache_history_bytes", "Bytes of superseded objects kept for watchers and exact reads.",
         MetricType::kGauge, [](const Cacher& cache) { return cache.figures().history_bytes; });
  const auto plain = [&](std::string_view name, std::string_view help, MetricType type, double value) {
    out.Write({.name = name, .help = help}, type, {}, value);
  };
  plain("keelson_encoded_forms_bytes", "Memory of encoded forms (JSON, table row, metadata only) of objects.",
        MetricType::kGauge, static_cast<double>(forms.bytes()));
  plain("keelson_encoded_forms_dropped_total", "Encoded forms given up to stay within --encoded-cache-mb.",
        MetricType::kCounter, static_cast<double>(forms.dropped()));
  plain("keelson_encoded_forms_hits_total", "Encoded forms that were there when asked for.", MetricType::kCounter,
        static_cast<double>(forms.hits()));
  plain("keelson_encoded_forms_max_bytes", "What --encoded-cache-mb allows.", MetricType::kGauge,
        static_cast<double>(forms.bytes_max()));
  plain("keelson_encoded_forms_misses_total", "Encoded forms that had to be made.", MetricType::kCounter,
        static_cast<double>(forms.misses()));
}

namespace {

// The kind as upstream's errors name it: its internal Go type.
std::string InternalType(const schema::Resource& resource) {
  std::string package(resource.group.substr(0, resource.group.find('.')));
  if (package.empty()) package = "core";
  if (package == "internal") package = "apiserverinternal";
  return "*" + package + "." + std::string(resource.kind);
}

// Defaults run once more when an object is read, so that old objects have what newer servers would have written.
std::unique_ptr<storage::ResourceCodec> CodecOf(const schema::Resource& resource, const storage::ResourceLayout& layout,
                                                const registry::Strategy& strategy, std::string_view media_type) {
  storage::SchemaCodecOptions options;
  options.resource = {std::string(resource.group), std::string(resource.plural)};
  options.storage = {layout.storage_version.group, layout.storage_version.version, std::string(resource.kind)};
  options.json = layout.json;
  using Media = storage::SchemaCodecOptions::Media;
  if (!layout.json && media_type == "application/json") options.media = Media::kJSON;
  if (!layout.json && media_type == "application/yaml") options.media = Media::kYAML;
  options.type = storage::StoredType(options.storage);
  if (options.type == nullptr) {  // a storage version whose shape is the hub's
    options.type = resource.type;
  }
  for (const auto& field : strategy.selectable_fields) {
    // Another name for a field that is there (spec.host): selectors are renamed when they are read, and a path is read
    // once.
    const bool alias =
        !field.path.empty() && field.name != field.path &&
        std::ranges::any_of(strategy.selectable_fields, [&](const auto& other) { return other.name == field.path; });
    if (alias) continue;
    storage::SelectedField selected{.name = std::string(field.name), .path = std::string(field.path)};
    if (field.value != nullptr) selected.value = field.value;
    options.fields.push_back(std::move(selected));
  }
  options.selects_namespace = strategy.selects_namespace;
  options.hub_version = meta::GroupVersion{std::string(resource.group), std::string(resource.version)}.ToString();
  options.convert = storage::StoredConversion(options.resource);
  if (!options.convert && options.hub_version != layout.storage_version.ToString()) {
    // Versions of one kind that differ in name only.
    options.convert = [](base::Arena& arena, Value object, std::string_view,
                         std::string_view to) -> Outcome<Value, std::string> {
      object.Set(arena, "apiVersion", Value::String(arena, to));
      return object;
    };
  }
  if (strategy.defaults != nullptr) options.defaults = strategy.defaults;
  options.defaults_on_read = layout.defaults_on_read && strategy.defaults != nullptr;
  return storage::NewSchemaCodec(std::move(options));
}

}  // namespace

ResourceStorage::ResourceStorage(StorageConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {
  if (telemetry::MetricsRegistry* const registry = impl_->config.metrics) {
    registry->AddCollector([impl = impl_.get()](telemetry::Exposition& out) { impl->Expose(out); });
  }
}
ResourceStorage::~ResourceStorage() = default;

std::shared_ptr<registry::Store> ResourceStorage::Find(std::string_view group, std::string_view plural) const {
  const auto found = impl_->entries.find({std::string(group), std::string(plural)});
  return found == impl_->entries.end() ? nullptr : found->second.registry;
}

std::shared_ptr<registry::Store> ResourceStorage::Get(const schema::Resource& resource) {
  if (auto known = Find(resource.group, resource.plural)) return known;
  const registry::Strategy* strategy = registry::FindStrategy(resource.group, resource.kind);
  if (strategy == nullptr) return nullptr;

  const StorageConfig& config = impl_->config;
  Impl::Entry entry;
  entry.resource = &resource;
  const storage::ResourceLayout layout = storage::LayoutOf({std::string(resource.group), std::string(resource.plural)});
  entry.codec = CodecOf(resource, layout, *strategy, config.media_type);
  if (impl_->metrics) {
    entry.metrics = std::make_unique<storage::ResourceMetrics>(
        *impl_->metrics, meta::GroupResource{std::string(resource.group), std::string(resource.plural)});
  }
  const storage::Transformer& transformer =
      config.encryption != nullptr ? config.encryption->For({std::string(resource.group), std::string(resource.plural)})
                                   : storage::Transformer::Identity();
  kv::Store& kv = impl_->StoreOf(resource);
  const bool elsewhere =
      !layout.json && (config.media_type == "application/json" || config.media_type == "application/yaml");
  entry.store = std::make_unique<storage::Store>(
      storage::StoreParts{.kv = kv,
                          .codec = *entry.codec,
                          .transformer = transformer,
                          .leases = impl_->LeasesOf(kv),
                          .forms = &impl_->forms,
                          .metrics = entry.metrics.get(),
                          .form = elsewhere ? dynamic_cast<const storage::StoredForm*>(entry.codec.get()) : nullptr},
      storage::StoreOptions{.etcd_prefix = config.etcd_prefix,
                            .resource_prefix = layout.resource_prefix,
                            .report_corrupt = config.report_corrupt});
  std::shared_ptr<storage::Interface> reads;
  if (impl_->Cached(resource)) {
    entry.cacher = std::make_shared<cacher::Cacher>(
        *entry.store, config.io->Next(), *config.clock, impl_->history,
        cacher::CacherOptions{.trigger_field = std::string(layout.trigger_field),
                              .object_type = InternalType(resource),
                              .list_from_snapshots = impl_->Enabled("ListFromCacheSnapshot")});
    reads = entry.cacher;
  } else {
    reads = std::shared_ptr<storage::Interface>(entry.store.get(), [](storage::Interface*) {});  // owned by the entry
  }
  registry::Store::Options options;
  options.resource = {std::string(resource.group), std::string(resource.plural)};
  options.kind = {std::string(resource.group), std::string(resource.kind)};
  options.namespaced = resource.namespaced;
  options.type = resource.type;
  options.strategy = strategy;
  options.storage = std::move(reads);
  options.codec = entry.codec;
  options.key_root = layout.resource_prefix;
  options.ttl_seconds = resource.plural == "events" ? config.event_ttl_seconds : 0;
  options.garbage_collector = config.garbage_collector;
  options.clock = config.clock;
  options.feature_enabled = config.feature_enabled;
  options.allow_privileged = config.allow_privileged;
  if (config.customize) config.customize(resource, options);
  entry.registry = std::make_shared<registry::Store>(std::move(options));
  auto made = entry.registry;
  impl_->entries.emplace(std::pair(std::string(resource.group), std::string(resource.plural)), std::move(entry));
  return made;
}

void ResourceStorage::Start() {
  for (auto& [name, entry] : impl_->entries) {
    if (entry.cacher) entry.cacher->Start();
  }
}

void ResourceStorage::Stop() {
  for (auto& [name, entry] : impl_->entries) {
    if (entry.cacher) entry.cacher->Stop();
  }
}

void ResourceStorage::Tick() {
  for (auto& [name, entry] : impl_->entries) {
    if (entry.cacher) entry.cacher->Tick();
  }
}

void ResourceStorage::Compacted(std::uint64_t revision) {
  for (auto& [name, entry] : impl_->entries) {
    if (entry.cacher) entry.cacher->Compacted(revision);
  }
}

std::vector<std::string> ResourceStorage::NotReady() const {
  std::vector<std::string> waiting;
  for (const auto& [name, entry] : impl_->entries) {
    if (entry.cacher && !entry.cacher->Ready()) waiting.push_back(entry.registry->options().resource.ToString());
  }
  return waiting;
}

bool ResourceStorage::Ready() const { return NotReady().empty(); }

Awaitable<void> ResourceStorage::PollCounts() {
  const bool size_estimates = impl_->Enabled("SizeBasedListCostEstimate");
  for (const auto& [name, entry] : impl_->entries) {
    if (!entry.metrics) continue;
    const auto stats = entry.cacher ? co_await entry.cacher->GetStats() : co_await entry.store->GetStats();
    if (!stats.ok()) {
      entry.metrics->Counted(-1, size_estimates ? std::optional<std::int64_t>(-1) : std::nullopt);
      continue;
    }
    if (!size_estimates) {
      entry.metrics->Counted(stats->object_count, std::nullopt);
      continue;
    }
    const bool unknown = stats->object_count > 0 && stats->estimated_average_size == 0;
    entry.metrics->Counted(stats->object_count, unknown ? -1 : stats->object_count * stats->estimated_average_size);
  }
}

Awaitable<void> ResourceStorage::CheckConsistency() {
  for (const auto& [name, entry] : impl_->entries) {
    if (!entry.cacher || !entry.cacher->Ready()) continue;
    const auto same = co_await entry.cacher->CheckConsistency();
    if (same.ok() && !*same) {
      log::Error("The watch cache differs from the store", "resource",
                 meta::GroupResource{name.first, name.second}.ToString());
    }
    if (entry.metrics) entry.metrics->ConsistencyChecked(!same.ok() ? "error" : *same ? "success" : "failure");
  }
}

std::vector<ResourceStorage::Count> ResourceStorage::Counts() const {
  std::vector<Count> counts;
  for (const auto& [name, entry] : impl_->entries) {
    if (!entry.cacher) continue;
    counts.push_back({name.first, name.second, static_cast<std::int64_t>(entry.cacher->figures().objects)});
  }
  return counts;
}

}  // namespace keelson::controlplane
