#include "apiextensions/controllers.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "apiextensions/conditions.h"
#include "async/cancellation.h"
#include "async/deadlines.h"
#include "async/event.h"
#include "async/gate.h"
#include "patch/field_manager.h"
#include "schema/types.h"
#include "storage/definition_outline.h"
#include "telemetry/log.h"

namespace keelson::apiextensions {
namespace {

constexpr std::chrono::milliseconds kRetry{1000};        // after a write that failed
constexpr int kWriteAttempts = 5;                        // of one status, while others write the definition, too
constexpr std::chrono::milliseconds kInstancePoll{500};  // while instances go
constexpr std::chrono::seconds kInstancesGoneWithin{60};

// Changes an object; false: leave it as it is.
using Change = std::function<bool(base::Arena& arena, Value object, std::string_view now)>;

// Waits for the duration, or until `ending` is cancelled.
Awaitable<void> SleepFor(std::chrono::milliseconds duration, async::CancellationPtr ending) {
  auto event = std::make_shared<async::Event>();
  const auto entry =
      async::Deadlines::Global().Add(base::Clock::Real().Monotonic() + duration, [event] { event->Set(); });
  const async::Cancellation::Registration registration = ending->OnCancel([event] { event->Set(); });
  co_await event->Wait();
}

const patch::FieldManager& StatusFields() {
  static const patch::FieldManager fields([] {
    patch::FieldManager::Options options;
    options.kind = {"apiextensions.k8s.io", "v1", "CustomResourceDefinition"};
    options.type = &schema::types::apiextensions_v1::kCustomResourceDefinition;
    options.subresource = "status";
    options.reset_fields = {"metadata", "spec"};
    return options;
  }());
  return fields;
}

std::shared_ptr<request::Context> NewContext(const std::string& name, std::string name_space = "") {
  auto context = std::make_shared<request::Context>();
  context->info.name = name;
  context->info.name_space = std::move(name_space);
  context->info.verb = "update";
  context->info.api_group = "apiextensions.k8s.io";
  context->info.api_version = "v1";
  context->user = request::User{.name = "system:apiserver", .groups = {std::string(request::kSystemMasters)}};
  return context;
}

bool OverlapsBuiltIn(const Definition& definition) {
  return definition.name == "apiservices.apiregistration.k8s.io" ||
         definition.name == "customresourcedefinitions.apiextensions.k8s.io";
}

}  // namespace

struct Controllers::Impl : std::enable_shared_from_this<Controllers::Impl> {
  std::shared_ptr<registry::Store> definitions;
  std::shared_ptr<Handler> handler;
  std::shared_ptr<DiscoveryDocuments> discovery;
  Options options;
  asio::any_io_executor executor;
  async::Gate gate;
  async::Event wake;
  std::atomic<bool> stopping{false};
  const async::CancellationPtr ending = async::Cancellation::New();  // of sleeps

  std::mutex mutex;
  std::deque<std::string> queue;  // names
  std::set<std::string, std::less<>> queued;
  std::set<std::string, std::less<>> finalizing;    // definitions whose instances are being deleted
  std::set<std::string, std::less<>> establishing;  // UIDs of definitions whose delay runs
  struct Group {
    std::set<std::string> definitions;  // names
    GroupNames names;
  };
  std::map<std::string, Group, std::less<>> groups;

  void Enqueue(const std::string& name) {
    std::lock_guard lock(mutex);
    if (queued.insert(name).second) queue.push_back(name);
    wake.Set();
  }
  std::optional<std::string> Next() {
    std::lock_guard lock(mutex);
    wake.Reset();
    if (queue.empty()) return std::nullopt;
    std::string name = std::move(queue.front());
    queue.pop_front();
    queued.erase(name);
    return name;
  }

  bool BeginDelay(const std::string& uid) {
    std::lock_guard lock(mutex);
    return establishing.insert(uid).second;
  }

  void Spawn(Awaitable<void> task) {
    auto entry = gate.Enter();
    if (!entry) return;
    auto held = std::make_shared<async::Gate::Entry>(*std::move(entry));
    asio::co_spawn(executor, std::move(task), [held](std::exception_ptr) {});
  }

  std::vector<DefinitionPtr> GroupOf(std::string_view group) {
    std::set<std::string> names;
    {
      std::lock_guard lock(mutex);
      if (const auto found = groups.find(group); found != groups.end()) names = found->second.definitions;
    }
    std::vector<DefinitionPtr> of;
    for (const std::string& name : names) {
      if (DefinitionPtr definition = handler->Find(name)) of.push_back(std::move(definition));
    }
    return of;
  }

  // Without schemas where it is stored as JSON, whole where it is stored as YAML, say. Nothing when it is unreadable.
  std::optional<Value> Outline(base::Arena& arena, const storage::ObjectPtr& object) const {
    if (auto outline = storage::DefinitionOutline(arena, object->stored().view())) return outline;
    const auto whole = definitions->Decode(arena, object);
    return whole.ok() ? std::optional<Value>(*whole) : std::nullopt;
  }

  // `before` and `now`: the definition until now and from now on; null where there is none.
  void CountNames(const DefinitionPtr& before, const DefinitionPtr& now);
  bool JudgeNames(base::Arena& arena, Value object, const std::string& group, std::string_view now);
  void OnChange(const registry::Informer::Change& change);
  static Awaitable<void> Run(std::shared_ptr<Impl> impl);
  static Awaitable<void> Sync(std::shared_ptr<Impl> impl, std::string name);
  static Awaitable<bool> Establish(std::shared_ptr<Impl> impl, DefinitionPtr definition);
  static Awaitable<void> EstablishLater(std::shared_ptr<Impl> impl, DefinitionPtr definition);
  static Awaitable<void> Finalize(std::shared_ptr<Impl> impl, DefinitionPtr definition);
  static Awaitable<Condition> DeleteInstances(std::shared_ptr<Impl> impl, DefinitionPtr definition);
  static Awaitable<void> Later(std::shared_ptr<Impl> impl, std::string name, std::chrono::milliseconds delay);
  static Awaitable<bool> Write(std::shared_ptr<Impl> impl, std::string name, std::string uid, Change change);
};

void Controllers::Impl::CountNames(const DefinitionPtr& before, const DefinitionPtr& now) {
  std::lock_guard lock(mutex);
  if (now) {
    Group& group = groups[now->group];
    group.definitions.insert(now->name);
    group.names.Add(now->accepted_names);
  }
  if (!before) return;
  const auto group = groups.find(before->group);
  group->second.names.Remove(before->accepted_names);
  if (!now) group->second.definitions.erase(before->name);
  if (group->second.definitions.empty()) groups.erase(group);
}

bool Controllers::Impl::JudgeNames(base::Arena& arena, Value object, const std::string& group, std::string_view now) {
  static const GroupNames kNone;
  std::lock_guard lock(mutex);
  const auto found = groups.find(group);
  return AcceptNames(arena, object, found == groups.end() ? kNone : found->second.names, now);
}

void Controllers::Impl::OnChange(const registry::Informer::Change& change) {
  const std::string name(change.object->attributes().name);
  if (change.deleted) {
    const DefinitionPtr gone = handler->Find(name);
    if (!gone) return;
    handler->Remove(name);
    discovery->Remove(*gone);
    CountNames(gone, nullptr);
    // Its names are free.
    for (const DefinitionPtr& other : GroupOf(gone->group)) {
      if (other->spec_names != other->accepted_names) Enqueue(other->name);
    }
    return;
  }
  base::Arena arena;
  const auto outline = Outline(arena, change.object);
  if (!outline) return log::Error("Could not read a definition", "name", name);
  DefinitionPtr definition = ReadDefinition(*outline, change.object);
  if (definition->versions.empty()) return;
  CountNames(handler->Find(name), definition);
  handler->Update(definition);
  discovery->Update(definition);
  Enqueue(name);
}

// Writes what `change` makes of the object's status and finalizers; nothing when it changes nothing. The first attempt
// reads the cache, the others, after a conflict, storage. False: it is to be tried again.
Awaitable<bool> Controllers::Impl::Write(std::shared_ptr<Impl> impl, std::string name, std::string uid, Change change) {
  for (int attempt = 0; attempt < kWriteAttempts; ++attempt) {
    const auto context = NewContext(name);
    base::Arena& arena = context->arena;
    auto current = co_await impl->definitions->Get("", name, attempt == 0 ? "0" : "");
    if (!current.ok()) co_return current.error().reason() == meta::StatusReason::kNotFound;
    auto old = impl->definitions->Decode(arena, *current);
    if (!old.ok()) co_return false;
    const std::string_view now = arena.Copy(registry::FormatTime(impl->options.clock->Now()));
    const Value next = old->Clone(arena);
    if (old->Get("metadata", "uid").as_string() != uid || !change(arena, next, now)) co_return true;
    StatusFields().Update(arena, *old, next, "kube-apiserver", now);
    // `next` has the version that was read: a concurrent change is a conflict.
    const auto updated = registry::UpdateBy([next](Value) -> meta::Result<Value> { return next; });
    auto written = co_await impl->definitions->Update(*context, name, updated, nullptr, nullptr,
                                                      {.endpoint = {registry::Endpoint::Part::kStatus}});
    if (written.ok() || written.error().reason() == meta::StatusReason::kNotFound) co_return true;
    if (written.error().reason() == meta::StatusReason::kConflict) continue;
    log::Error("Could not write the status of a definition", "name", name, "err", written.error());
    co_return false;
  }
  co_return false;
}

Awaitable<Condition> Controllers::Impl::DeleteInstances(std::shared_ptr<Impl> impl, DefinitionPtr definition) {
  const auto failed = [](std::string_view reason, std::string message) {
    return Condition{"Terminating", "True", reason, std::move(message)};
  };
  const auto serving = impl->handler->ServingOf(definition->name);
  if (!serving.ok()) co_return failed("InstanceDeletionFailed", "could not list instances: " + serving.error());
  if (!*serving) co_return failed("InstanceDeletionFailed", "could not list instances: the definition is gone");
  const std::shared_ptr<registry::Store> store = (*serving)->base;
  auto all = co_await store->List("", {});
  if (!all.ok()) {
    co_return failed("InstanceDeletionFailed", "could not list instances: " + std::string(all.error().message()));
  }
  std::set<std::string> namespaces;
  for (const auto& object : all->items) namespaces.emplace(object->attributes().name_space);
  for (const std::string& name_space : namespaces) {
    const auto context = NewContext("", name_space);
    context->info.verb = "deletecollection";
    auto deleted = co_await store->DeleteCollection(*context, name_space, {}, {}, nullptr, 1);
    if (!deleted.ok()) {
      co_return failed("InstanceDeletionFailed",
                       "could not issue all deletes: " + std::string(deleted.error().message()));
    }
  }
  const auto until = base::Clock::Real().Monotonic() + kInstancesGoneWithin;
  for (;;) {
    storage::ListOptions one;
    one.predicate.limit = 1;
    auto left = co_await store->List("", std::move(one));
    if (left.ok() && left->items.empty())
      co_return Condition{"Terminating", "False", "InstanceDeletionCompleted", "removed all instances"};
    if (!left.ok() || base::Clock::Real().Monotonic() >= until || impl->stopping) {
      co_return failed("InstanceDeletionCheck",
                       "could not confirm zero CustomResources remaining: " +
                           std::string(left.ok() ? "context deadline exceeded" : left.error().message()));
    }
    co_await SleepFor(kInstancePoll, impl->ending);
  }
}

Awaitable<void> Controllers::Impl::Finalize(std::shared_ptr<Impl> impl, DefinitionPtr definition) {
  const std::string name = definition->name;
  bool again = !co_await Write(impl, name, definition->uid, [](base::Arena& arena, Value object, std::string_view now) {
    return SetCondition(arena, object,
                        {"Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress"},
                        now);
  });
  if (!again) {
    Condition outcome{"Terminating", "False", "NeverEstablished", "resource was never established"};
    if (OverlapsBuiltIn(*definition)) {
      outcome = {"Terminating", "False", "OverlappingBuiltInResource",
                 "instances overlap with built-in resources in storage"};
    } else if (definition->established) {
      outcome = co_await DeleteInstances(impl, definition);
    }
    const bool done = outcome.status == "False";
    const bool written = co_await Write(impl, name, definition->uid,
                                        [&outcome, done](base::Arena& arena, Value object, std::string_view now) {
                                          const bool changed = SetCondition(arena, object, outcome, now);
                                          return (done && RemoveFinalizer(arena, object)) || changed;
                                        });
    again = !written || !done;
  }
  {
    std::lock_guard lock(impl->mutex);
    impl->finalizing.erase(name);
  }
  if (again) impl->Spawn(Later(impl, name, kRetry));
}

Awaitable<void> Controllers::Impl::Later(std::shared_ptr<Impl> impl, std::string name,
                                         std::chrono::milliseconds delay) {
  co_await SleepFor(delay, impl->ending);
  impl->Enqueue(name);
}

// Sets the condition Established. False: the write failed and has to be tried again.
Awaitable<bool> Controllers::Impl::Establish(std::shared_ptr<Impl> impl, DefinitionPtr definition) {
  const Change change = [impl = impl.get()](base::Arena& scratch, Value object, std::string_view now) {
    if (!ConditionIs(object, "NamesAccepted", "True") || ConditionIs(object, "Established", "True")) return false;
    const Value conversion = object.Get("spec", "conversion");
    const bool unusable = conversion["strategy"].as_string() == "Webhook" && impl->options.usable_webhook &&
                          !impl->options.usable_webhook(conversion["webhook"]);
    if (unusable) {
      return SetCondition(scratch, object,
                          {"Established", "False", "InvalidCABundle", "The conversion webhook CABundle is invalid"},
                          now);
    }
    return SetCondition(scratch, object,
                        {"Established", "True", "InitialNamesAccepted", "the initial names have been accepted"}, now);
  };
  co_return co_await Write(impl, definition->name, definition->uid, change);
}

// Establishes the definition after the delay of servers in a group. Other definitions do not wait for it.
Awaitable<void> Controllers::Impl::EstablishLater(std::shared_ptr<Impl> impl, DefinitionPtr definition) {
  co_await SleepFor(impl->options.establishing_delay, impl->ending);
  const bool written = impl->stopping || co_await Establish(impl, definition);
  {
    std::lock_guard lock(impl->mutex);
    impl->establishing.erase(definition->uid);
  }
  if (!written) impl->Spawn(Later(impl, definition->name, kRetry));
}

Awaitable<void> Controllers::Impl::Sync(std::shared_ptr<Impl> impl, std::string name) {
  const DefinitionPtr definition = impl->handler->Find(name);
  if (!definition) co_return;
  base::Arena arena;
  auto value = impl->Outline(arena, definition->object);
  if (!value) co_return;
  const Value finalizers = value->Get("metadata", "finalizers");
  const bool holds =
      std::ranges::any_of(finalizers.items(), [](const Value& one) { return one.as_string() == kCleanupFinalizer; });
  if (definition->deleting && holds) {
    {
      std::lock_guard lock(impl->mutex);
      if (!impl->finalizing.insert(name).second) co_return;
    }
    impl->Spawn(Finalize(impl, definition));
    co_return;
  }
  const Change judge = [impl = impl.get(), &definition](base::Arena& scratch, Value object, std::string_view now) {
    const bool names = impl->JudgeNames(scratch, object, definition->group, now);
    const bool approval = CheckApproval(scratch, object, now);
    return CheckStructural(scratch, object, now) || approval || names;
  };
  // After a start nearly all definitions are as they should be: that is seen in the cache, without a write and, but for
  // CheckStructural() of definitions that preserve unknown fields, without their schemas.
  const bool proper = !definition->preserve_unknown_fields && !judge(arena, value->Clone(arena), "");
  bool written = proper || co_await Write(impl, name, definition->uid, judge);
  if (written && definition->names_accepted && !definition->established && !definition->deleting) {
    if (impl->options.establishing_delay.count() == 0) {
      written = co_await Establish(impl, definition);
    } else if (impl->BeginDelay(definition->uid)) {
      impl->Spawn(EstablishLater(impl, definition));
    }
  }
  if (!written) impl->Spawn(Later(impl, name, kRetry));
}

Awaitable<void> Controllers::Impl::Run(std::shared_ptr<Impl> impl) {
  while (!impl->stopping) {
    auto name = impl->Next();
    if (!name) {
      co_await impl->wake.Wait();
      continue;
    }
    co_await Sync(impl, *std::move(name));
  }
}

Controllers::Controllers(std::shared_ptr<registry::Store> definitions, std::shared_ptr<Handler> handler,
                         std::shared_ptr<DiscoveryDocuments> discovery, Options options)
    : impl_(std::make_shared<Impl>()) {
  impl_->definitions = definitions;
  impl_->handler = std::move(handler);
  impl_->discovery = std::move(discovery);
  impl_->options = options;
  informer_ = std::make_unique<registry::Informer>(std::move(definitions));
  informer_->AddHandler(
      [impl = impl_](std::vector<registry::Informer::Change>& changes) {
        for (const auto& change : changes) impl->OnChange(change);
      },
      registry::Informer::Form::kStored);
}

Controllers::~Controllers() { Stop(); }

void Controllers::Start(asio::any_io_executor executor) {
  impl_->executor = executor;
  impl_->Spawn(Impl::Run(impl_));
  informer_->Start(executor);
}

void Controllers::Stop() {
  informer_->Stop();
  impl_->stopping = true;
  impl_->ending->Cancel();
  impl_->wake.Set();
  impl_->gate.Close();
}

bool Controllers::HasSynced() const { return informer_->HasSynced(); }

}  // namespace keelson::apiextensions
