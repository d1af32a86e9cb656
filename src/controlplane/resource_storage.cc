#include "controlplane/resource_storage.h"

#include <algorithm>

#include "cacher/cacher.h"
#include "storage/encoded_forms.h"
#include "storage/lease_manager.h"
#include "storage/schema_codec.h"
#include "storage/storage_factory.h"
#include "storage/store.h"
#include "storage/stored_versions.h"
#include "storage/transform/encryption_at_rest.h"

namespace keelson::controlplane {

struct ResourceStorage::Impl {
  struct Entry {
    const schema::Resource* resource;
    std::shared_ptr<const storage::ResourceCodec> codec;
    std::unique_ptr<storage::Store> store;
    std::shared_ptr<cacher::Cacher> cacher;  // null where it is not cached
    std::shared_ptr<registry::Store> registry;
  };

  explicit Impl(StorageConfig config_in)
      : config(std::move(config_in)), forms(config.encoded_cache_bytes), history(config.history_bytes) {}

  StorageConfig config;
  storage::EncodedForms forms;
  cacher::HistoryBudget history;
  std::map<kv::Store*, storage::LeaseManager> leases;  // of each store
  std::map<std::pair<std::string, std::string>, Entry> entries;

  kv::Store& StoreOf(const schema::Resource& resource) const {
    const auto found = config.kv_overrides.find(std::string(resource.group) + "/" + std::string(resource.plural));
    return found == config.kv_overrides.end() ? *config.kv : *found->second;
  }
  storage::LeaseManager& LeasesOf(kv::Store& store) {
    return leases
        .try_emplace(&store, store, *config.clock,
                     storage::LeaseOptions{.reuse_duration_seconds = config.lease_reuse_seconds})
        .first->second;
  }
  bool Cached(const schema::Resource& resource) const {
    if (!config.watch_cache || resource.plural == "events") return false;
    const std::string name = meta::GroupResource{std::string(resource.group), std::string(resource.plural)}.ToString();
    return !config.uncached.contains(name);
  }
};

namespace {

// Defaults run once more when an object is read, so that old objects have what newer servers would have written.
std::unique_ptr<storage::ResourceCodec> CodecOf(const schema::Resource& resource, const storage::ResourceLayout& layout,
                                                const registry::Strategy& strategy) {
  storage::SchemaCodecOptions options;
  options.resource = {std::string(resource.group), std::string(resource.plural)};
  options.storage = {layout.storage_version.group, layout.storage_version.version, std::string(resource.kind)};
  options.json = layout.json;
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
  return storage::NewSchemaCodec(std::move(options));
}

}  // namespace

ResourceStorage::ResourceStorage(StorageConfig config) : impl_(std::make_unique<Impl>(std::move(config))) {}
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
  entry.codec = CodecOf(resource, layout, *strategy);
  const storage::Transformer& transformer =
      config.encryption != nullptr ? config.encryption->For({std::string(resource.group), std::string(resource.plural)})
                                   : storage::Transformer::Identity();
  kv::Store& kv = impl_->StoreOf(resource);
  entry.store = std::make_unique<storage::Store>(
      storage::StoreParts{.kv = kv,
                          .codec = *entry.codec,
                          .transformer = transformer,
                          .leases = impl_->LeasesOf(kv),
                          .forms = &impl_->forms},
      storage::StoreOptions{.etcd_prefix = config.etcd_prefix, .resource_prefix = layout.resource_prefix});
  std::shared_ptr<storage::Interface> reads;
  if (impl_->Cached(resource)) {
    entry.cacher =
        std::make_shared<cacher::Cacher>(*entry.store, config.io->Next(), *config.clock, impl_->history,
                                         cacher::CacherOptions{.trigger_field = std::string(layout.trigger_field)});
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

std::vector<ResourceStorage::Count> ResourceStorage::Counts() const {
  std::vector<Count> counts;
  for (const auto& [name, entry] : impl_->entries) {
    if (!entry.cacher) continue;
    counts.push_back({name.first, name.second, static_cast<std::int64_t>(entry.cacher->figures().objects)});
  }
  return counts;
}

}  // namespace keelson::controlplane
