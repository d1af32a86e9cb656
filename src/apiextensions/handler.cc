#include "apiextensions/handler.h"

#include <atomic>
#include <mutex>

#include "base/strings.h"
#include "endpoints/dynamic_resource.h"
#include "server/lazy_storage.h"
#include "telemetry/log.h"

namespace keelson::apiextensions {

namespace {
// Requests in flight when a definition goes have so long before their watches end.
constexpr std::chrono::milliseconds kRemovedGrace{1000};
}  // namespace

struct TableEntry::Lazy final : CompiledBudget::Member {
  explicit Lazy(server::ResourceStorage& storage_in) : storage(storage_in) {}

  server::ResourceStorage& storage;
  mutable std::mutex mutex;  // of making and dropping it
  mutable base::AtomicRef<const Serving> serving;
  std::string failure;  // why it could not be made; under the mutex

 private:
  // A resource with a request or a watch is kept. A request that finds it at this moment is served as one during a
  // change of the definition.
  bool Drop() const override {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock) return false;
    const ServingPtr held = serving.Load();
    if (!held) return true;
    const bool used = held->uses.load(std::memory_order_relaxed) > 0 || !server::IsIdle(*held->base->options().storage);
    if (used) return false;
    storage.Remove(held->base, kRemovedGrace);
    serving.Store(nullptr);
    return true;
  }
};

namespace {

using endpoints::Resolution;

constexpr std::string_view kTerminating = "create not allowed while custom resource definition is terminating";

struct Table : base::RefCounted {
  DefinitionTree tree;
};

std::vector<std::string_view> Segments(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  while (path.ends_with('/')) path.remove_suffix(1);
  return base::Split(path, '/');
}

meta::GroupResource ResourceOf(const request::RequestInfo& info) { return {info.api_group, info.resource}; }

// Before all definitions are known, a path that none of them serves may be served in a moment.
Resolution Unknown(const std::atomic<bool>& synced) {
  if (synced.load(std::memory_order_acquire)) return {};
  meta::Status::Fields fields =
      meta::NewServiceUnavailable(
          "the request has been made before all known HTTP paths have been installed, please try again")
          .fields();
  if (!fields.details) fields.details.emplace();
  fields.details->retry_after_seconds = 5;
  return meta::Status(std::move(fields));
}

// Reads of metadata only need no conversion, so that the garbage collector goes on while a conversion webhook is away.
bool WantsMetadataOnly(const endpoints::Exchange& exchange, const endpoints::Scope& scope) {
  const std::string& verb = exchange.context.info.verb;
  if (verb != "get" && verb != "list" && verb != "watch") return false;
  const auto media = verb == "watch" ? endpoints::NegotiateStream(exchange.http, exchange.query, scope.restrictions)
                                     : endpoints::NegotiateOutput(exchange.http, exchange.query, scope.restrictions);
  return media.ok() && (media->transform == endpoints::Transform::kPartialObjectMetadata ||
                        media->transform == endpoints::Transform::kPartialObjectMetadataList);
}

// The scope rules of upstream: a namespace where none belongs, or none where one does, is another resource's path.
bool ScopeFits(const Definition& definition, const request::RequestInfo& info) {
  const bool has_namespace = !info.name_space.empty();
  if (!definition.namespaced) return !has_namespace;
  return has_namespace || info.verb == "list" || info.verb == "watch";
}

}  // namespace

struct Handler::Impl {
  ServingConfig config;
  std::shared_ptr<registry::Store> definitions;
  CompiledForms compiled;
  base::AtomicRef<const Table> table{base::Ref<const Table>(new Table)};
  std::atomic<bool> synced{false};
  Discovery discovery;

  TableEntryPtr Find(std::string_view name) const {
    const auto now = table.Load();
    const TableEntryPtr* const found = now->tree.Find(name);
    return found == nullptr ? TableEntryPtr() : *found;
  }

  Outcome<ServingPtr, std::string> ServingOf(const TableEntry& entry) const {
    TableEntry::Lazy& lazy = *entry.lazy;
    lazy.Use();
    if (ServingPtr made = lazy.serving.Load()) return made;
    ServingPtr serving;
    {
      std::lock_guard lock(lazy.mutex);
      if (ServingPtr made = lazy.serving.Load()) return made;
      if (!lazy.failure.empty()) return lazy.failure;
      base::Arena arena;
      auto value = definitions->Decode(arena, entry.definition->object);
      auto made = value.ok() ? NewServing(config, compiled, *entry.definition, *value)
                             : Outcome<ServingPtr, std::string>(std::string(value.error().message()));
      if (!made.ok()) {
        lazy.failure = made.error();
        log::Error("Could not serve a custom resource", "definition", entry.definition->name, "err", made.error());
        return made.error();
      }
      serving = *made;
      lazy.serving.Store(serving);
    }
    compiled.budget->Charge(entry.lazy, EstimatedBytes(*serving->kind));
    if (const TableEntryPtr current = Find(entry.definition->name); !current || current->lazy != entry.lazy)
      Withdraw(serving, current);
    return serving;
  }

  // Removes the storage of `made`, whose definition changed or was deleted while `made` was being made. `current`: the
  // definition's entry now; may be null. If that storage displaced the current one in the table, the current one is made
  // again by the next request.
  void Withdraw(const ServingPtr& made, const TableEntryPtr& current) const {
    config.storage->Remove(made->base, kRemovedGrace);
    if (!current) return;
    const std::lock_guard lock(current->lazy->mutex);
    const ServingPtr now = current->lazy->serving.Load();
    const meta::GroupResource& resource = made->base->options().resource;
    if (now && config.storage->Find(resource.group, resource.resource) != now->base)
      current->lazy->serving.Store(nullptr);
  }

  void Retire(const TableEntry& entry) const {
    if (const ServingPtr serving = entry.lazy->serving.Load()) config.storage->Remove(serving->base, kRemovedGrace);
  }
};

Handler::Handler(ServingConfig config, std::shared_ptr<registry::Store> definitions) : impl_(std::make_shared<Impl>()) {
  impl_->config = std::move(config);
  impl_->definitions = std::move(definitions);
  impl_->compiled.budget = std::make_shared<CompiledBudget>(impl_->config.compiled_bytes_max);
}

Handler::~Handler() = default;

void Handler::SetDiscovery(Discovery discovery) { impl_->discovery = std::move(discovery); }
void Handler::SetSynced() { impl_->synced.store(true, std::memory_order_release); }
bool Handler::synced() const { return impl_->synced.load(std::memory_order_acquire); }

void Handler::Update(DefinitionPtr definition) {
  const auto now = impl_->table.Load();
  auto entry = base::MakeRef<TableEntry>();
  entry->definition = std::move(definition);
  const TableEntryPtr before = impl_->Find(entry->definition->name);
  if (before && before->definition->ServesAs(*entry->definition)) {
    entry->lazy = before->lazy;
  } else {
    entry->lazy = std::make_shared<TableEntry::Lazy>(*impl_->config.storage);
  }
  const bool replaced = before && entry->lazy != before->lazy;
  auto next = base::MakeRef<Table>();
  next->tree = now->tree;
  next->tree.Put(TableEntryPtr(entry));
  impl_->table.Store(base::Ref<const Table>(next));
  if (replaced) impl_->Retire(*before);
}

void Handler::Remove(std::string_view name) {
  const TableEntryPtr before = impl_->Find(name);
  if (!before) return;
  auto next = base::MakeRef<Table>();
  next->tree = impl_->table.Load()->tree;
  next->tree.Erase(name);
  impl_->table.Store(base::Ref<const Table>(next));
  impl_->Retire(*before);
}

DefinitionPtr Handler::Find(std::string_view name) const {
  const TableEntryPtr found = impl_->Find(name);
  return found ? found->definition : nullptr;
}

std::vector<DefinitionPtr> Handler::All() const {
  const auto now = impl_->table.Load();
  std::vector<DefinitionPtr> all;
  all.reserve(now->tree.size());
  for (auto it = now->tree.begin(); it.valid(); it.Next()) all.push_back((*it)->definition);
  return all;
}

Outcome<ServingUse, std::string> Handler::ServingOf(std::string_view name) const {
  const TableEntryPtr found = impl_->Find(name);
  if (!found) return ServingUse();
  KS_TRY(ServingPtr serving, impl_->ServingOf(*found));
  return ServingUse(std::move(serving));
}

Resolution Handler::Resolve(endpoints::Exchange& exchange, ServingUse& held) const {
  const Impl& impl = *impl_;
  const request::RequestInfo& info = exchange.context.info;
  const TableEntryPtr entry = impl.Find(info.resource + "." + info.api_group);
  if (!entry || info.api_prefix != "apis") return Unknown(impl.synced);
  const Definition& definition = *entry->definition;
  const DefinitionVersion* const version = definition.FindVersion(info.api_version);
  if (version == nullptr || !version->served || !ScopeFits(definition, info)) return {};
  if (!definition.names_accepted && !definition.established) return {};
  const auto serving = impl.ServingOf(*entry);
  if (!serving.ok()) return meta::NewInternalError("error resolving resource");
  held = ServingUse(*serving);
  const ServedVersion* const served = held->Find(info.api_version);
  if (served == nullptr) return {};
  if (!version->deprecation_warning.empty()) {
    exchange.context.warnings.Add(version->deprecation_warning);
    exchange.context.audit_annotations.Add("k8s.io/deprecated", "true");
  }
  if (definition.terminating) exchange.create_forbidden = kTerminating;
  const endpoints::ScopePtr scope = info.subresource.empty()       ? served->main
                                    : info.subresource == "status" ? served->status
                                    : info.subresource == "scale"  ? served->scale
                                                                   : nullptr;
  exchange.allow_cbor = impl.config.cbor;
  if (!scope) return meta::NewNotFound(ResourceOf(info), info.name);
  if (info.subresource.empty() && served->metadata != served->main && WantsMetadataOnly(exchange, *scope))
    return served->metadata;
  return scope;
}

Awaitable<std::optional<http::Response>> Handler::Handle(endpoints::ExchangePtr exchange) const {
  const std::shared_ptr<Impl> impl = impl_;
  if (exchange->context.info.is_resource_request) {
    ServingUse held;  // until the request is answered, also if the definition goes meanwhile
    Resolution resolution = Resolve(*exchange, held);
    co_return co_await endpoints::ServeResolved(std::move(resolution), exchange);
  }
  const auto parts = Segments(exchange->http.path);
  if (impl->discovery && parts.size() >= 2 && parts.size() <= 3 && parts[0] == "apis") {
    auto document = impl->discovery(*exchange, parts[1], parts.size() == 3 ? parts[2] : std::string_view());
    if (document) co_return document;
  }
  Resolution unknown = Unknown(impl->synced);
  co_return co_await endpoints::ServeResolved(std::move(unknown), exchange);
}

}  // namespace keelson::apiextensions
