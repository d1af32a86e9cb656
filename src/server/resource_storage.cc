#include "server/resource_storage.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "async/blocking_pool.h"
#include "base/atomic_ref.h"
#include "base/btree.h"
#include "cacher/cacher.h"
#include "server/cache_metrics.h"
#include "server/lazy_storage.h"
#include "storage/encoded_forms.h"
#include "storage/lease_manager.h"
#include "storage/metrics.h"
#include "storage/packed.h"
#include "storage/schema_codec.h"
#include "storage/storage_factory.h"
#include "storage/store.h"
#include "storage/stored_versions.h"
#include "storage/transform/encryption_at_rest.h"
#include "telemetry/log.h"

namespace keelson::server {

namespace {

// Upstream waits so long before it ends the watches of a storage that is replaced.
constexpr std::chrono::milliseconds kReplacedGrace{1000};

std::string NameOf(std::string_view group, std::string_view plural) {
  return std::string(plural) + "." + std::string(group);
}

struct Entry : base::RefCounted {
  std::string name;  // pods., deployments.apps
  meta::GroupResource resource;
  bool built_in = true;
  BackingPtr backing;
  std::shared_ptr<registry::Store> registry;
};
using EntryPtr = base::Ref<const Entry>;
struct EntryName {
  std::string_view operator()(const EntryPtr& entry) const { return entry->name; }
};
using EntryTree = base::BTree<EntryPtr, EntryName>;
struct Entries : base::RefCounted {
  EntryTree tree;
};

}  // namespace

struct ResourceStorage::Impl {
  explicit Impl(StorageConfig config_in)
      : config(std::move(config_in)), forms(config.encoded_cache_bytes), history(config.history_bytes) {
    if (config.metrics != nullptr) metrics = std::make_unique<storage::StorageMetrics>(*config.metrics);
  }

  StorageConfig config;
  storage::EncodedForms forms;
  cacher::HistoryBudget history;
  std::unique_ptr<storage::StorageMetrics> metrics;
  std::map<kv::Store*, storage::LeaseManager> leases;  // of each store
  async::BlockingPool teardown{"storage-teardown", 1};
  std::mutex mutex;  // of changes
  base::AtomicRef<const Entries> entries{base::Ref<const Entries>(new Entries)};

  std::vector<EntryPtr> All() const {
    const auto now = entries.Load();
    std::vector<EntryPtr> all;
    all.reserve(now->tree.size());
    for (auto it = now->tree.begin(); it.valid(); it.Next()) all.push_back(*it);
    return all;
  }
  EntryPtr Find(std::string_view group, std::string_view plural) const {
    const auto now = entries.Load();
    const EntryPtr* found = now->tree.Find(NameOf(group, plural));
    return found == nullptr ? EntryPtr() : *found;
  }
  // Returns the previous entry, or null. REQUIRES: mutex held.
  EntryPtr Publish(EntryPtr entry) {
    const auto now = entries.Load();
    EntryPtr before;
    if (const EntryPtr* found = now->tree.Find(entry->name)) before = *found;
    auto next = base::MakeRef<Entries>();
    next->tree = now->tree;
    next->tree.Put(std::move(entry));
    entries.Store(base::Ref<const Entries>(next));
    return before;
  }
  // Removed entries, until their watches end.
  struct Closing {
    BackingPtr backing;
    base::Clock::SteadyTime due;
  };
  std::vector<Closing> closing;
  void CloseDue(base::Clock::SteadyTime now);

  // Of gates that are on by default.
  bool Enabled(std::string_view gate) const {
    return config.feature_enabled == nullptr || config.feature_enabled(gate);
  }
  kv::Store& StoreOf(const meta::GroupResource& resource) const {
    const auto found = config.kv_overrides.find(resource.group + "/" + resource.resource);
    return found == config.kv_overrides.end() ? *config.kv : *found->second;
  }
  storage::LeaseManager& LeasesOf(kv::Store& store) {
    return leases
        .try_emplace(&store, store, *config.clock,
                     storage::LeaseOptions{.reuse_duration_seconds = config.lease_reuse_seconds,
                                           .objects = metrics ? &metrics->lease_objects : nullptr})
        .first->second;
  }
  bool Cached(const registry::ResourceDefinition& definition) const {
    return config.watch_cache && definition.layout.watch_cache &&
           !config.uncached.contains(definition.resource.ToString());
  }
  enum class Use : std::uint8_t { kServing, kView };
  BackingPtr NewBackingOf(const registry::ResourceDefinition& definition,
                          std::shared_ptr<const storage::ResourceCodec> codec, Use use = Use::kServing);
  registry::Store::Options OptionsOf(const registry::ResourceDefinition& definition, const Backing& backing,
                                     std::shared_ptr<storage::Interface> reads) const;
  void Expose(telemetry::Exposition& out) const;
};

void ResourceStorage::Impl::Expose(telemetry::Exposition& out) const {
  const std::vector<EntryPtr> held = All();
  std::vector<NamedCache> caches;  // those that run
  for (const EntryPtr& one : held) {
    if (one->backing->cacher && one->backing->started())
      caches.push_back({one->resource.group, one->resource.resource, *one->backing->cacher});
  }
  ExposeCaches(caches, out);
  ExposeEncodedForms(forms, out);
}

namespace {

using Media = storage::SchemaCodecOptions::Media;

Media MediaOf(const storage::ResourceLayout& layout, std::string_view media_type) {
  if (!layout.json && media_type == "application/json") return Media::kJSON;
  if (!layout.json && media_type == "application/yaml") return Media::kYAML;
  return Media::kSame;
}

// Objects may lie in the store in another served version than the one that is written (events of either group). Null:
// no version of the kind has a conversion.
storage::Convert ServedConversion(const registry::ResourceDefinition& definition) {
  std::map<std::string, const registry::Conversion*, std::less<>> conversions;
  for (const registry::ServedVersion& version : definition.versions) {
    if (version.conversion != nullptr) conversions.emplace(version.group_version.ToString(), version.conversion);
  }
  if (conversions.empty()) return nullptr;
  return
      [conversions = std::move(conversions), hub = definition.hub_version().group_version.ToString()](
          base::Arena& arena, Value object, std::string_view from, std::string_view to) -> Outcome<Value, std::string> {
        const auto found = conversions.find(from);
        if (found == conversions.end() || to != hub)
          return "objects of version " + std::string(from) + " cannot be converted to " + std::string(to);
        return found->second->to_hub(arena, object);
      };
}

// Defaults run once more when an object is read, so that old objects have what newer servers would have written.
std::unique_ptr<storage::ResourceCodec> CodecOf(const registry::ResourceDefinition& definition,
                                                std::string_view media_type) {
  const storage::ResourceLayout& layout = definition.layout;
  const registry::Strategy& strategy = definition.strategy->row();
  const registry::ServedVersion& hub = definition.hub_version();
  storage::SchemaCodecOptions options;
  options.resource = definition.resource;
  options.storage = {layout.storage_version.group, layout.storage_version.version, definition.kind.kind};
  options.json = layout.json;
  options.media = MediaOf(layout, media_type);
  options.type = storage::StoredType(options.storage);
  if (options.type == nullptr) options.type = hub.type;  // a storage version whose shape is the hub's
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
  options.hub_version = hub.group_version.ToString();
  options.convert = storage::StoredConversion(options.resource);
  if (!options.convert && options.hub_version == layout.storage_version.ToString())
    options.convert = ServedConversion(definition);
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
  auto codec = storage::NewSchemaCodec(std::move(options));
  // Definitions of custom resources, and APIServices, which are too small to be packed.
  return layout.json ? storage::NewPackedCodec(std::move(codec)) : std::move(codec);
}

}  // namespace

// Under the lock of changes.
BackingPtr ResourceStorage::Impl::NewBackingOf(const registry::ResourceDefinition& definition,
                                               std::shared_ptr<const storage::ResourceCodec> codec, Use use) {
  const storage::ResourceLayout& layout = definition.layout;
  BackingPtr backing = NewBacking(teardown);
  backing->codec = std::move(codec);
  if (metrics && use == Use::kServing)
    backing->metrics = std::make_unique<storage::ResourceMetrics>(*metrics, definition.resource);
  const storage::Transformer& transformer =
      config.encryption != nullptr ? config.encryption->For(definition.resource) : storage::Transformer::Identity();
  kv::Store& kv = StoreOf(definition.resource);
  const auto* const form = dynamic_cast<const storage::StoredForm*>(backing->codec.get());
  const auto* const completion = dynamic_cast<const storage::Completion*>(backing->codec.get());
  const std::string type = "*" + definition.traits.go_package + "." + definition.kind.kind;
  backing->store =
      std::make_unique<storage::Store>(storage::StoreParts{.kv = kv,
                                                           .codec = *backing->codec,
                                                           .transformer = transformer,
                                                           .leases = LeasesOf(kv),
                                                           .forms = &forms,
                                                           .metrics = backing->metrics.get(),
                                                           .form = form != nullptr && form->differs() ? form : nullptr,
                                                           .completion = completion},
                                       storage::StoreOptions{.etcd_prefix = config.etcd_prefix,
                                                             .resource_prefix = layout.resource_prefix,
                                                             .report_corrupt = config.report_corrupt,
                                                             .object_type = type});
  if (use == Use::kServing && Cached(definition)) {
    backing->cacher = std::make_unique<cacher::Cacher>(
        *backing->store, config.io->Next(), *config.clock, history,
        cacher::CacherOptions{.trigger_field = std::string(layout.trigger_field),
                              .object_type = type,
                              .list_from_snapshots = Enabled("ListFromCacheSnapshot")});
  }
  return backing;
}

registry::Store::Options ResourceStorage::Impl::OptionsOf(const registry::ResourceDefinition& definition,
                                                          const Backing& backing,
                                                          std::shared_ptr<storage::Interface> reads) const {
  registry::Store::Options options{registry::StoredKindOf(definition)};
  options.storage = std::move(reads);
  options.codec = backing.codec;
  options.key_root = definition.layout.resource_prefix;
  options.ttl_seconds = definition.traits.expires ? config.event_ttl_seconds : 0;
  options.garbage_collector = config.garbage_collector;
  options.clock = config.clock;
  options.feature_enabled = config.feature_enabled;
  options.allow_privileged = config.allow_privileged;
  if (config.customize) config.customize(options);
  return options;
}

ResourceStorage::ResourceStorage(StorageConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {
  if (telemetry::MetricsRegistry* const registry = impl_->config.metrics) {
    registry->AddCollector([impl = impl_.get()](telemetry::Exposition& out) { impl->Expose(out); });
  }
}
ResourceStorage::~ResourceStorage() = default;

std::shared_ptr<registry::Store> ResourceStorage::Find(std::string_view group, std::string_view plural) const {
  const EntryPtr found = impl_->Find(group, plural);
  return found ? found->registry : nullptr;
}

const registry::Catalog& ResourceStorage::catalog() const { return *impl_->config.catalog; }

std::shared_ptr<registry::Store> ResourceStorage::Get(std::string_view group, std::string_view plural) {
  const auto definition = catalog().Find(group, plural);
  return definition ? Get(*definition) : nullptr;
}

std::shared_ptr<registry::Store> ResourceStorage::Get(const registry::ResourceDefinition& definition) {
  if (auto known = Find(definition.resource.group, definition.resource.resource)) return known;
  if (!definition.strategy) return nullptr;
  std::lock_guard lock(impl_->mutex);
  auto entry = base::MakeRef<Entry>();
  entry->name = NameOf(definition.resource.group, definition.resource.resource);
  entry->resource = definition.resource;
  entry->backing = impl_->NewBackingOf(definition, CodecOf(definition, impl_->config.media_type));
  // It lives as long as this does: streams need not hold it.
  storage::Interface* const reads = entry->backing->cacher
                                        ? static_cast<storage::Interface*>(entry->backing->cacher.get())
                                        : entry->backing->store.get();
  entry->registry = std::make_shared<registry::Store>(impl_->OptionsOf(
      definition, *entry->backing, std::shared_ptr<storage::Interface>(reads, [](storage::Interface*) {})));
  auto made = entry->registry;
  impl_->Publish(EntryPtr(entry));
  return made;
}

std::shared_ptr<registry::Store> ResourceStorage::Add(const registry::ResourceDefinition& definition,
                                                      std::shared_ptr<const storage::ResourceCodec> codec) {
  std::lock_guard lock(impl_->mutex);
  auto entry = base::MakeRef<Entry>();
  entry->name = NameOf(definition.resource.group, definition.resource.resource);
  entry->resource = definition.resource;
  entry->built_in = false;
  entry->backing = impl_->NewBackingOf(definition, std::move(codec));
  entry->registry =
      std::make_shared<registry::Store>(impl_->OptionsOf(definition, *entry->backing, NewLazyStorage(entry->backing)));
  auto made = entry->registry;
  if (const EntryPtr before = impl_->Publish(EntryPtr(entry)); before && !before->built_in)
    impl_->closing.push_back({before->backing, impl_->config.clock->Monotonic() + kReplacedGrace});
  return made;
}

std::shared_ptr<registry::Store> ResourceStorage::NewView(const registry::ResourceDefinition& definition,
                                                          std::shared_ptr<const storage::ResourceCodec> codec) {
  std::lock_guard lock(impl_->mutex);
  const BackingPtr backing = impl_->NewBackingOf(definition, std::move(codec), Impl::Use::kView);
  const std::shared_ptr<storage::Interface> reads(backing, backing->store.get());
  return std::make_shared<registry::Store>(impl_->OptionsOf(definition, *backing, reads));
}

void ResourceStorage::Remove(const std::shared_ptr<registry::Store>& store, std::chrono::milliseconds grace) {
  std::lock_guard lock(impl_->mutex);
  const meta::GroupResource& resource = store->options().resource;
  const EntryPtr found = impl_->Find(resource.group, resource.resource);
  if (!found || found->registry != store) return;
  const auto now = impl_->entries.Load();
  auto next = base::MakeRef<Entries>();
  next->tree = now->tree;
  next->tree.Erase(found->name);
  impl_->entries.Store(base::Ref<const Entries>(next));
  impl_->closing.push_back({found->backing, impl_->config.clock->Monotonic() + grace});
}

void ResourceStorage::Start() {
  for (const EntryPtr& entry : impl_->All()) {
    if (entry->built_in) entry->backing->Start();
  }
}

void ResourceStorage::Impl::CloseDue(base::Clock::SteadyTime now) {
  std::lock_guard lock(mutex);
  std::erase_if(closing, [&](Closing& one) {
    if (one.due > now) return false;
    teardown.Post([backing = std::move(one.backing)] { backing->Close(); });
    return true;
  });
}

void ResourceStorage::Stop() {
  impl_->CloseDue(base::Clock::SteadyTime::max());
  for (const EntryPtr& entry : impl_->All()) entry->backing->Close();
}

void ResourceStorage::Tick() {
  impl_->CloseDue(impl_->config.clock->Monotonic());
  const auto now = impl_->entries.Load();
  for (auto at = now->tree.begin(); at.valid(); at.Next()) {
    const Backing& backing = *(*at)->backing;
    if (backing.cacher && backing.started()) backing.cacher->Tick();
  }
}

void ResourceStorage::Compacted(std::uint64_t revision) {
  for (const EntryPtr& entry : impl_->All()) {
    if (entry->backing->cacher) entry->backing->cacher->Compacted(revision);
  }
}

std::vector<std::string> ResourceStorage::NotReady() const {
  std::vector<std::string> waiting;
  for (const EntryPtr& entry : impl_->All()) {
    if (entry->built_in && entry->backing->cacher && !entry->backing->cacher->Ready())
      waiting.push_back(entry->resource.ToString());
  }
  return waiting;
}

bool ResourceStorage::Ready() const { return NotReady().empty(); }

Awaitable<void> ResourceStorage::PollCounts() {
  const bool size_estimates = impl_->Enabled("SizeBasedListCostEstimate");
  for (const EntryPtr& entry : impl_->All()) {
    Backing& backing = *entry->backing;
    if (!backing.metrics) continue;
    const auto stats = backing.cacher ? co_await backing.cacher->GetStats() : co_await backing.store->GetStats();
    if (!stats.ok()) {
      backing.metrics->Counted(-1, size_estimates ? std::optional<std::int64_t>(-1) : std::nullopt);
      continue;
    }
    backing.average_bytes.store(stats->estimated_average_size, std::memory_order_relaxed);
    if (!size_estimates) {
      backing.metrics->Counted(stats->object_count, std::nullopt);
      continue;
    }
    const bool unknown = stats->object_count > 0 && stats->estimated_average_size == 0;
    backing.metrics->Counted(stats->object_count, unknown ? -1 : stats->object_count * stats->estimated_average_size);
  }
}

Awaitable<void> ResourceStorage::CheckConsistency() {
  for (const EntryPtr& entry : impl_->All()) {
    const Backing& backing = *entry->backing;
    if (!backing.cacher || !backing.cacher->Ready()) continue;
    const auto same = co_await backing.cacher->CheckConsistency();
    if (same.ok() && !*same)
      log::Error("The watch cache differs from the store", "resource", entry->resource.ToString());
    if (backing.metrics) backing.metrics->ConsistencyChecked(!same.ok() ? "error" : *same ? "success" : "failure");
  }
}

std::vector<ResourceStorage::Count> ResourceStorage::Counts() const {
  std::vector<Count> counts;
  for (const EntryPtr& entry : impl_->All()) {
    const Backing& backing = *entry->backing;
    if (!backing.cacher || !backing.started()) continue;
    counts.push_back({entry->resource.group, entry->resource.resource,
                      static_cast<std::int64_t>(backing.cacher->figures().objects),
                      backing.average_bytes.load(std::memory_order_relaxed)});
  }
  return counts;
}

}  // namespace keelson::server
