#include "controllers/garbage_collector.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <map>
#include <set>

#include "controllers/dependency_graph.h"
#include "controllers/discovery.h"
#include "controllers/gc_operations.h"
#include "controllers/resource_table.h"
#include "storage/packed.h"
#include "telemetry/log.h"

namespace keelson::controllers {
namespace {

using registry::Informer;
using Result = WorkQueue::Result;

constexpr std::size_t kWorkers = 20;
constexpr std::string_view kDiscover = "discover";
constexpr std::string_view kOpen = "open";
constexpr std::chrono::seconds kDiscoveryDelay{1};  // after a change of aggregated APIs
// How long decisions that need every dependent of an object wait for a resource's first list (upstream's
// initialSyncTimeout, at the start only), and how often they look.
constexpr std::chrono::seconds kInitialSyncTimeout{30};
constexpr std::chrono::milliseconds kSyncPeriod{20};

bool IsIgnored(const MappedResource& resource) {
  return resource.resource == "events" && (resource.group.empty() || resource.group == "events.k8s.io");
}

class GarbageCollector final : public Controller, public std::enable_shared_from_this<GarbageCollector> {
 public:
  explicit GarbageCollector(ControllerContext context)
      : context_(std::move(context)),
        sync_errors_(context_.metrics->NewCounter({.name = "garbagecollector_controller_resources_sync_error_total",
                                                   .help = "Number of garbage collector resources sync errors",
                                                   .stability = telemetry::Stability::kAlpha})),
        graph_({.attempt_to_delete = [this](const std::string& uid) { delete_->Add(uid); },
                .attempt_to_delete_rate_limited = [this](const std::string& uid) { delete_->AddRateLimited(uid); },
                .attempt_to_orphan = [this](const std::string& uid) { orphan_->Add(uid); },
                .invalid_namespace = [this](const DependencyGraph::Node& node,
                                            const OwnerReference& owner) { Report(node, owner); }}),
        operations_(context_.client, table_,
                    [this](const MappedResource& resource) { return StoreOf(resource.group, resource.resource); }) {}

  void Start() override;
  void Stop() override {
    discover_->ShutDown();
    delete_->ShutDown();
    orphan_->ShutDown();
  }

 private:
  struct References {  // to owners, by what became of these
    std::vector<OwnerReference> solid, dangling, waiting;
    bool failed = false;           // to be tried again
    bool wrong_namespace = false;  // will never be right
  };

  struct Followed {
    std::shared_ptr<registry::Store> store;
    std::shared_ptr<const Informer::Registration> registration;
    base::Clock::SteadyTime since;
  };

  std::shared_ptr<registry::Store> StoreOf(const std::string& group, const std::string& resource) const {
    const auto found = followed_.find({group, resource});
    return found == followed_.end() ? nullptr : found->second.store;
  }
  // The graph has the objects that were there when their resources began to be followed. Before that, an owner's
  // dependents are not all known: orphaning it would leave some of them to be collected.
  bool GraphIsWhole();
  void Follow(const MappedResource& resource);
  void Unfollow(std::string_view definition);
  void OnDefinitions(std::vector<Informer::Change>& changes);
  void OnChanges(const MappedResource& resource, const registry::Store& store,
                 const std::vector<Informer::Change>& changes);
  void Report(const DependencyGraph::Node& node, const OwnerReference& owner);
  bool IsFollowed(const ObjectIdentity& identity) const;
  // The object at `identity` does not exist.
  Result NotFound(const ObjectIdentity& identity) {
    graph_.VirtualDeleted(identity);
    return Result::Done();
  }

  static Awaitable<Result> Prepare(std::shared_ptr<GarbageCollector> self, std::string key);
  Awaitable<Result> SyncDiscovery();
  Result OpenQueues();
  static Awaitable<Result> AttemptToDelete(std::shared_ptr<GarbageCollector> self, std::string uid);
  static Awaitable<Result> AttemptToOrphan(std::shared_ptr<GarbageCollector> self, std::string uid);
  Awaitable<Result> AttemptToDeleteItem(ObjectIdentity identity, bool deleting_dependents);
  Awaitable<Result> ProcessDeletingDependents(ObjectIdentity identity);
  Awaitable<References> Classify(ObjectIdentity item, std::vector<OwnerReference> owners);
  Awaitable<Result> Collect(ObjectIdentity identity, ObjectMetadata latest, References references);
  Awaitable<Result> DeleteForeground(ObjectIdentity identity, ObjectMetadata latest);
  Awaitable<Result> DeleteItem(ObjectIdentity identity, ObjectMetadata latest, std::string policy);

  const ControllerContext context_;
  telemetry::Counter& sync_errors_;
  ResourceTable table_;
  DependencyGraph graph_;
  GCOperations operations_;
  std::shared_ptr<WorkQueue> discover_, delete_, orphan_;
  std::map<std::pair<std::string, std::string>, Followed> followed_;  // by group, resource
  std::set<std::pair<std::string, std::string>> unsynced_;            // keys of followed_
  bool discovered_ = false;
};

void GarbageCollector::Start() {
  const auto weak = weak_from_this();
  auto options = context_.QueueOptions("", 1);
  options.metrics = nullptr;
  discover_ = WorkQueue::New(context_.executor, std::move(options),
                             [weak](std::string key) { return Prepare(weak.lock(), std::move(key)); });
  delete_ = WorkQueue::New(context_.executor, context_.QueueOptions("garbage_collector_attempt_to_delete", kWorkers),
                           [weak](std::string uid) { return AttemptToDelete(weak.lock(), std::move(uid)); });
  orphan_ = WorkQueue::New(context_.executor, context_.QueueOptions("garbage_collector_attempt_to_orphan", kWorkers),
                           [weak](std::string uid) { return AttemptToOrphan(weak.lock(), std::move(uid)); });
  discover_->Open();
  discover_->Add(std::string(kDiscover));
  discover_->Add(std::string(kOpen));
  context_.informers->AddHandler(
      "apiextensions.k8s.io", "customresourcedefinitions",
      [weak](std::vector<Informer::Change>& changes) {
        if (const auto self = weak.lock()) self->OnDefinitions(changes);
      },
      Informer::Form::kStored);
  context_.informers->AddHandler("apiregistration.k8s.io", "apiservices", [weak](auto& changes) {
    const auto self = weak.lock();
    if (!self) return;
    for (const Informer::Change& change : changes) {
      if (change.value.Get("spec", "service").is_map())
        self->discover_->AddAfter(std::string(kDiscover), kDiscoveryDelay);
    }
  });
}

void GarbageCollector::OnDefinitions(std::vector<Informer::Change>& changes) {
  for (const Informer::Change& change : changes) {
    const std::string_view name = change.object->attributes().name;
    const MappedResource* const mapped =
        change.deleted ? nullptr : table_.SetDefinition(name, storage::Unpacked(change.object->stored()).view());
    if (mapped != nullptr) {
      Follow(*mapped);
    } else {
      table_.RemoveDefinition(name);
      Unfollow(name);
    }
  }
}

void GarbageCollector::Follow(const MappedResource& resource) {
  if (!resource.watchable || IsIgnored(resource) || followed_.contains({resource.group, resource.resource})) return;
  const auto store = resource.custom ? context_.metadata_store(resource.group, resource.resource, resource.namespaced)
                                     : context_.informers->Find(resource.group, resource.resource);
  if (!store) return;  // an aggregated API: its objects are looked up when they are named as owners
  const auto registration = context_.informers->AddHandler(
      resource.group, resource.resource, store,
      [weak = weak_from_this(), resource, source = store.get()](std::vector<Informer::Change>& changes) {
        if (const auto self = weak.lock()) self->OnChanges(resource, *source, changes);
      },
      Informer::Form::kStored);
  followed_[{resource.group, resource.resource}] = {store, registration, context_.clock->Monotonic()};
  unsynced_.emplace(resource.group, resource.resource);
}

void GarbageCollector::Unfollow(std::string_view definition) {
  const auto dot = definition.find('.');
  const std::string resource(definition.substr(0, dot));
  const std::string group(dot == std::string_view::npos ? "" : definition.substr(dot + 1));
  if (followed_.erase({group, resource}) > 0) context_.informers->Abandon(group, resource);
}

void GarbageCollector::OnChanges(const MappedResource& resource, const registry::Store& store,
                                 const std::vector<Informer::Change>& changes) {
  const std::string api_version = resource.api_version();
  for (const Informer::Change& change : changes) {
    auto metadata = ReadObjectMetadata(change.object->stored().view());
    if (!metadata) {
      base::Arena arena;
      auto decoded = store.Decode(arena, change.object);
      if (!decoded.ok()) continue;
      metadata = MetadataOf(*decoded);
    }
    const ObjectIdentity identity{api_version, resource.kind, metadata->name_space, metadata->name, metadata->uid};
    if (change.deleted) {
      graph_.Deleted(identity);
    } else {
      graph_.Observe(identity, *metadata);
    }
  }
}

void GarbageCollector::Report(const DependencyGraph::Node& node, const OwnerReference& owner) {
  auto entry = context_.gate->Enter();
  if (!entry) return;
  auto report = [](std::shared_ptr<GarbageCollector> self, ObjectIdentity identity, OwnerReference reference,
                   async::Gate::Entry held) -> Awaitable<void> {
    co_await self->operations_.ReportInvalidNamespace(std::move(identity), std::move(reference), *self->context_.clock);
    (void)held;
  }(shared_from_this(), node.identity, owner, *std::move(entry));
  asio::co_spawn(context_.executor, std::move(report), asio::detached);
}

bool GarbageCollector::GraphIsWhole() {
  const auto late = context_.clock->Monotonic() - kInitialSyncTimeout;
  std::erase_if(unsynced_, [this, late](const auto& key) {
    const auto found = followed_.find(key);
    return found == followed_.end() || found->second.registration->HasSynced() || found->second.since < late;
  });
  return discovered_ && unsynced_.empty();
}

Awaitable<Result> GarbageCollector::Prepare(std::shared_ptr<GarbageCollector> self, std::string key) {
  if (!self) co_return Result::Done();
  if (key == kOpen) co_return self->OpenQueues();
  co_return co_await self->SyncDiscovery();
}

Result GarbageCollector::OpenQueues() {
  if (!GraphIsWhole()) return Result::After(kSyncPeriod);
  for (const auto& queue : {delete_, orphan_}) queue->Open();
  return Result::Done();
}

Awaitable<Result> GarbageCollector::SyncDiscovery() {
  auto discovered = co_await Discover(context_.client);
  if (!discovered.ok()) {
    sync_errors_.Inc();
    log::Error("Garbage collector failed to discover resources", "err", discovered.error());
    co_return Result::Retry();
  }
  if (!discovered->failed_groups.empty()) {
    sync_errors_.Inc();
    log::Info("Garbage collector failed to discover some groups", "groups", discovered->Error());
  }
  table_.SetDiscovered(*discovered);
  for (const MappedResource* const resource : table_.All()) Follow(*resource);
  discovered_ = true;
  co_return Result::Done();
}

bool GarbageCollector::IsFollowed(const ObjectIdentity& identity) const {
  const MappedResource* const mapped = table_.Find(identity.api_version, identity.kind);
  return mapped != nullptr && followed_.contains({mapped->group, mapped->resource});
}

Awaitable<Result> GarbageCollector::AttemptToDelete(std::shared_ptr<GarbageCollector> self, std::string uid) {
  if (!self) co_return Result::Done();
  const DependencyGraph::Node* const node = self->graph_.Find(uid);
  if (node == nullptr || (node->being_deleted && !node->deleting_dependents)) co_return Result::Done();
  co_return co_await self->AttemptToDeleteItem(node->identity, node->deleting_dependents);
}

// Reads the object as it is now, and deletes it when its owners say so.
Awaitable<Result> GarbageCollector::AttemptToDeleteItem(ObjectIdentity identity, bool deleting_dependents) {
  GCOperations::Got got = co_await operations_.Get(identity);
  if (got.unreachable == Unreachable::kWrongNamespace) co_return Result::Done();
  if (got.unreachable == Unreachable::kNoMapping) co_return Result::Retry();
  if (!got.object.ok()) {
    if (got.object.error().reason() == meta::StatusReason::kNotFound) co_return NotFound(identity);
    log::Error("Garbage collector could not read an object", "item", identity.ToString(), "err", got.object.error());
    co_return Result::Retry();
  }
  if (got.object->uid != identity.uid) co_return NotFound(identity);
  if (deleting_dependents) co_return co_await ProcessDeletingDependents(identity);
  const DependencyGraph::Node* const node = graph_.Find(identity.uid);
  if (node == nullptr) co_return Result::Done();
  if (node->is_virtual) {
    // It exists. If its resource is watched, an event will report its deletion; otherwise it is looked up again.
    if (!IsFollowed(identity)) co_return Result::Retry();
    ObjectIdentity seen = identity;
    if (!got.namespaced) seen.name_space.clear();
    graph_.Confirm(seen);
  }
  if (got.object->owners.empty()) co_return Result::Done();
  References references = co_await Classify(identity, got.object->owners);
  if (references.wrong_namespace) co_return Result::Done();
  if (references.failed) co_return Result::Retry();
  co_return co_await Collect(std::move(identity), *std::move(got.object), std::move(references));
}

// Lets the object go when no dependent blocks it, or sees to these first.
Awaitable<Result> GarbageCollector::ProcessDeletingDependents(ObjectIdentity identity) {
  if (!GraphIsWhole()) co_return Result::After(kSyncPeriod);
  const DependencyGraph::Node* const node = graph_.Find(identity.uid);
  if (node == nullptr) co_return Result::Done();
  const auto blocking = node->BlockingDependents();
  for (const DependencyGraph::Node* const dependent : blocking) {
    if (!dependent->deleting_dependents) delete_->Add(dependent->identity.uid);
  }
  if (!blocking.empty()) co_return Result::Done();
  const std::string error = co_await operations_.RemoveFinalizer(identity, std::string(kForegroundFinalizer));
  if (error.empty()) co_return Result::Done();
  log::Error("Garbage collector could not remove a finalizer", "item", identity.ToString(), "err", error);
  co_return Result::Retry();
}

Awaitable<GarbageCollector::References> GarbageCollector::Classify(ObjectIdentity item,
                                                                   std::vector<OwnerReference> owners) {
  References references;
  for (const OwnerReference& reference : owners) {
    ObjectIdentity owner{reference.api_version, reference.kind, "", reference.name, reference.uid};
    bool absent = graph_.absent_owners().Has(owner);
    owner.name_space = item.name_space;
    absent = absent || graph_.absent_owners().Has(owner);
    if (absent) {
      references.dangling.push_back(reference);
      continue;
    }
    GCOperations::Got got = co_await operations_.Get(owner);
    if (got.unreachable == Unreachable::kWrongNamespace) {
      log::V(2).Info("Item is cluster-scoped, but refers to a namespaced owner", "item", item.ToString());
      references.wrong_namespace = true;
      co_return references;
    }
    if (got.unreachable == Unreachable::kNoMapping) {
      references.failed = true;
      co_return references;
    }
    if (!got.namespaced) owner.name_space.clear();
    const bool gone = !got.object.ok() && got.object.error().reason() == meta::StatusReason::kNotFound;
    if (!got.object.ok() && !gone) {
      log::Error("Garbage collector could not read an owner", "owner", owner.ToString(), "err", got.object.error());
      references.failed = true;
      co_return references;
    }
    if (gone || got.object->uid != reference.uid) {
      graph_.absent_owners().Add(owner);
      references.dangling.push_back(reference);
    } else if (got.object->deleting && got.object->HasFinalizer(kForegroundFinalizer)) {
      references.waiting.push_back(reference);
    } else {
      references.solid.push_back(reference);
    }
  }
  co_return references;
}

Awaitable<Result> GarbageCollector::Collect(ObjectIdentity identity, ObjectMetadata latest, References references) {
  if (!references.solid.empty()) {
    if (references.dangling.empty() && references.waiting.empty()) co_return Result::Done();
    std::vector<std::string> uids;
    for (const auto* const list : {&references.dangling, &references.waiting}) {
      for (const OwnerReference& reference : *list) uids.push_back(reference.uid);
    }
    const auto patched = co_await operations_.RemoveOwners(identity, std::move(uids));
    if (patched.ok()) co_return Result::Done();
    log::Error("Garbage collector could not remove owner references", "item", identity.ToString(), "err",
               patched.error());
    co_return Result::Retry();
  }
  const DependencyGraph::Node* const node = graph_.Find(identity.uid);
  if (!references.waiting.empty() && node != nullptr && !node->dependents.empty())
    co_return co_await DeleteForeground(std::move(identity), std::move(latest));
  const std::string policy = latest.HasFinalizer(kOrphanFinalizer)       ? "Orphan"
                             : latest.HasFinalizer(kForegroundFinalizer) ? "Foreground"
                                                                         : "Background";
  co_return co_await DeleteItem(std::move(identity), std::move(latest), policy);
}

// An owner waits for this object, which has dependents itself. If one of these is in foreground deletion already, there
// may be a cycle: the object must not block its owners any more.
Awaitable<Result> GarbageCollector::DeleteForeground(ObjectIdentity identity, ObjectMetadata latest) {
  const DependencyGraph::Node* const node = graph_.Find(identity.uid);
  bool cycle = false;
  for (const DependencyGraph::Node* const dependent : node->dependents) cycle = cycle || dependent->deleting_dependents;
  if (cycle) {
    const auto unblocked = co_await operations_.UnblockOwners(identity, node->owners);
    if (!unblocked.ok()) {
      log::Error("Garbage collector could not unblock owners", "item", identity.ToString(), "err", unblocked.error());
      co_return Result::Retry();
    }
    // The deletion below expects the version that was read.
    latest.resource_version.clear();
  }
  co_return co_await DeleteItem(std::move(identity), std::move(latest), "Foreground");
}

Awaitable<Result> GarbageCollector::DeleteItem(ObjectIdentity identity, ObjectMetadata latest, std::string policy) {
  log::V(2).Info("Deleting item", "item", identity.ToString(), "propagationPolicy", policy);
  const auto deleted = co_await operations_.Delete(identity, std::move(latest), policy);
  if (deleted.ok()) co_return Result::Done();
  if (deleted.error().reason() == meta::StatusReason::kNotFound) co_return NotFound(identity);
  if (deleted.error().reason() != meta::StatusReason::kConflict)
    log::Error("Garbage collector could not delete an object", "item", identity.ToString(), "err", deleted.error());
  co_return Result::Retry();
}

Awaitable<Result> GarbageCollector::AttemptToOrphan(std::shared_ptr<GarbageCollector> self, std::string uid) {
  if (!self) co_return Result::Done();
  if (!self->GraphIsWhole()) co_return Result::After(kSyncPeriod);
  const DependencyGraph::Node* const node = self->graph_.Find(uid);
  if (node == nullptr) co_return Result::Done();
  const ObjectIdentity owner = node->identity;
  std::vector<ObjectIdentity> dependents;
  for (const DependencyGraph::Node* const dependent : node->dependents) dependents.push_back(dependent->identity);
  for (const ObjectIdentity& dependent : dependents) {
    const auto patched = co_await self->operations_.RemoveOwners(dependent, {owner.uid});
    if (patched.ok() || patched.error().reason() == meta::StatusReason::kNotFound) continue;
    log::Error("Garbage collector could not orphan an object", "item", dependent.ToString(), "owner", owner.ToString(),
               "err", patched.error());
    co_return Result::Retry();
  }
  const std::string error = co_await self->operations_.RemoveFinalizer(owner, std::string(kOrphanFinalizer));
  if (error.empty()) co_return Result::Done();
  log::Error("Garbage collector could not remove a finalizer", "item", owner.ToString(), "err", error);
  co_return Result::Retry();
}

}  // namespace

std::shared_ptr<Controller> NewGarbageCollector(ControllerContext context) {
  return std::make_shared<GarbageCollector>(std::move(context));
}

}  // namespace keelson::controllers
