// Deletion: grace periods, finalizers, propagation, collections.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <span>

#include "async/event.h"
#include "base/strings.h"
#include "registry/store.h"

namespace keelson::registry {
namespace {

constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";
constexpr std::int64_t kDeleteCollectionPage = 10000;

bool HasFinalizer(Value metadata, std::string_view name) {
  return std::ranges::any_of(metadata["finalizers"].items(), [&](Value item) { return item.as_string() == name; });
}

void BumpGeneration(base::Arena& arena, Value metadata) {
  if (const auto generation = metadata["generation"].as_int(); generation > 0)
    metadata.Set(arena, "generation", generation + 1);
}

// Pods: what the option says, else what the spec says; at once when nothing can be running.
std::int64_t PodGracePeriod(Value pod, const DeleteOptions& options) {
  std::int64_t period = 0;
  if (options.grace_period_seconds) {
    period = *options.grace_period_seconds;
  } else {
    period = pod.Get("spec", "terminationGracePeriodSeconds").as_int();
  }
  if (period < 0) period = 1;
  const std::string_view phase = pod.Get("status", "phase").as_string();
  if (pod.Get("spec", "nodeName").as_string().empty() || phase == "Succeeded" || phase == "Failed") period = 0;
  return period;
}

}  // namespace

meta::Result<Store::DeletePlan> Store::BeforeDelete(request::Context& context, Value object,
                                                    const DeleteOptions& options) const {
  base::Arena& arena = context.arena;
  Value metadata = object["metadata"];
  const std::string name(metadata["name"].as_string());
  const meta::GroupResource kind{options_.kind.group, options_.kind.kind};  // upstream names the Kind here
  if (options.uid && *options.uid != metadata["uid"].as_string()) {
    return meta::NewConflict(kind, name,
                             "the UID in the precondition (" + *options.uid + ") does not match the UID in record (" +
                                 std::string(metadata["uid"].as_string()) +
                                 "). The object might have been deleted and then recreated");
  }
  if (options.resource_version && *options.resource_version != metadata["resourceVersion"].as_string()) {
    return meta::NewConflict(kind, name,
                             "the ResourceVersion in the precondition (" + *options.resource_version +
                                 ") does not match the ResourceVersion in record (" +
                                 std::string(metadata["resourceVersion"].as_string()) +
                                 "). The object might have been modified");
  }
  if (!strategy().graceful_deletion) return DeletePlan{};

  const auto now = options_.clock->Now();
  if (const Value timestamp = metadata["deletionTimestamp"]; timestamp.is_string()) {
    const std::int64_t grace = metadata["deletionGracePeriodSeconds"].as_int();
    if (grace == 0) return DeletePlan{};
    if (!options.grace_period_seconds) return DeletePlan{.pending = true};
    const std::int64_t wanted = PodGracePeriod(object, options);
    if (wanted >= grace) return DeletePlan{.pending = true};
    std::int64_t period = wanted;
    const auto marked = ParseTime(timestamp.as_string());
    auto ends = (marked ? *marked : now) - std::chrono::seconds(grace) + std::chrono::seconds(wanted);
    if (ends < now) {
      ends = now;
      if (period != 0) period = 1;
    }
    metadata.Set(arena, "deletionTimestamp", Value::String(arena, FormatTime(ends)));
    metadata.Set(arena, "deletionGracePeriodSeconds", period);
    return DeletePlan{.graceful = true};
  }
  const std::int64_t period = PodGracePeriod(object, options);
  metadata.Set(arena, "deletionTimestamp", Value::String(arena, FormatTime(now + std::chrono::seconds(period))));
  metadata.Set(arena, "deletionGracePeriodSeconds", period);
  BumpGeneration(arena, metadata);
  return DeletePlan{.graceful = true};
}

bool Store::UpdateDeletionFinalizers(base::Arena& arena, Value object, const DeleteOptions& options) const {
  Value metadata = object["metadata"];
  const bool had_orphan = HasFinalizer(metadata, kOrphan);
  const bool had_foreground = HasFinalizer(metadata, kForeground);
  bool orphan = false;
  bool foreground = false;
  if (options_.garbage_collector && strategy().garbage_collection != GarbageCollection::kUnsupported) {
    if (options.orphan_dependents) {
      orphan = *options.orphan_dependents;
    } else if (options.propagation_policy) {
      orphan = *options.propagation_policy == "Orphan";
      foreground = *options.propagation_policy == "Foreground";
    } else {
      orphan = had_orphan || (!had_foreground && strategy().garbage_collection == GarbageCollection::kOrphan);
      foreground = had_foreground;
    }
  } else if (!options_.garbage_collector) {
    return false;
  }
  if (orphan == had_orphan && foreground == had_foreground) return false;
  Value finalizers = Value::List(arena);
  for (const Value item : metadata["finalizers"].items()) {
    if (item.as_string() != kOrphan && item.as_string() != kForeground) finalizers.Append(arena, item);
  }
  if (orphan) finalizers.Append(arena, kOrphan);
  if (foreground) finalizers.Append(arena, kForeground);
  if (finalizers.empty()) {
    metadata.Erase("finalizers");
  } else {
    metadata.Set(arena, "finalizers", finalizers);
  }
  return true;
}

Task<DeleteResult> Store::DeleteForReal(request::Context& context, std::string key, std::string name,
                                        storage::Preconditions preconditions, ValidateObject validate,
                                        ObjectPtr existing, bool ignore_not_found, bool dry_run) const {
  storage::ValidateDeletion check = [this, &context,
                                     validate](const ObjectPtr& object) -> Awaitable<meta::Result<void>> {
    if (!validate) co_return meta::Result<void>();
    KS_CO_TRY(Value value, Decode(context.arena, object));
    co_return co_await validate(value);
  };
  ObjectPtr gone = existing;
  if (dry_run) {
    KS_CO_RETURN_IF_ERROR(co_await check(existing));
  } else {
    auto deleted = co_await options_.storage->Delete(key, std::move(preconditions), check, nullptr, context.caller());
    if (deleted.ok()) {
      gone = *std::move(deleted);
    } else if (!(ignore_not_found && deleted.error().code == storage::ErrorCode::kKeyNotFound)) {
      co_return InterpretError(deleted.error(), "delete", name);
    }
    if (options_.after_delete) {
      auto value = Decode(context.arena, gone);
      if (value.ok()) co_await options_.after_delete(context, *value);
    }
  }
  co_return DeleteResult{.object = std::move(gone), .deleted = true};
}

namespace {

struct Marking {
  const Store& store;
  request::Context& context;
  const RESTStrategy& strategy;
  const Call& call;
  ValidateObject validate;
};

Awaitable<meta::Result<storage::Updated>> Mark(std::shared_ptr<const Marking> marking, ObjectPtr current) {
  base::Arena& arena = marking->context.arena;
  KS_CO_TRY(Value object, marking->store.Decode(arena, current));
  if (marking->validate) KS_CO_RETURN_IF_ERROR(co_await marking->validate(object.Clone(arena)));
  Value metadata = object["metadata"];
  if (!metadata["deletionTimestamp"].is_string())
    metadata.Set(arena, "deletionTimestamp", Value::String(arena, FormatTime(marking->call.clock.Now())));
  marking->strategy.MarkDeletion(marking->call, object);
  co_return storage::Updated{.object = object};
}

}  // namespace

Task<DeleteResult> Store::MarkDeletion(request::Context& context, std::string key, std::string name, ObjectPtr existing,
                                       DeleteOptions options, ValidateObject validate) const {
  std::vector<std::string> warnings;
  const Call call = MakeCall(context, warnings);
  auto marking =
      std::make_shared<const Marking>(Marking{*this, context, *options_.strategy, call, std::move(validate)});
  if (options.dry_run) {
    KS_CO_TRY(const storage::Updated updated, co_await Mark(marking, existing));
    KS_CO_TRY(ObjectPtr wrapped, Wrap(context, key, updated.object, existing->resource_version()));
    co_return DeleteResult{.object = std::move(wrapped), .deleted = false};
  }
  storage::Preconditions preconditions{.uid = options.uid, .resource_version = options.resource_version};
  auto written = co_await options_.storage->GuaranteedUpdate(
      key, false, preconditions, [marking](const ObjectPtr& current) { return Mark(marking, current); }, nullptr,
      context.caller());
  if (!written.ok()) co_return InterpretError(written.error(), "delete", name);
  co_return DeleteResult{.object = *std::move(written), .deleted = false};
}

Task<DeleteResult> Store::Delete(request::Context& context, std::string name_space, std::string name,
                                 DeleteOptions options, ValidateObject validate) const {
  if (strategy().delete_forbidden != nullptr) {
    const std::string_view why = strategy().delete_forbidden(name);
    if (!why.empty()) co_return meta::NewForbidden(options_.resource, name, why);
  }
  KS_CO_TRY(std::string key, KeyFor(name_space, name));
  auto got = co_await options_.storage->Get(key, {.caller = context.caller()});
  if (!got.ok()) co_return InterpretError(got.error(), "delete", name);
  ObjectPtr existing = *std::move(got);
  base::Arena& arena = context.arena;

  // What would happen, tried on a copy.
  KS_CO_TRY(Value trial, Decode(arena, existing));
  const bool marks = options_.strategy->marks_deletion();
  if (options_.spec_finalizers || marks) {
    // Namespaces and definitions check in their own words; a namespace that is on its way out is left alone.
    const std::string_view uid = trial.Get("metadata", "uid").as_string();
    if (options.uid && *options.uid != uid) {
      co_return meta::NewConflict(
          options_.resource, name,
          "Precondition failed: UID in precondition: " + *options.uid + ", UID in object meta: " + std::string(uid));
    }
    const std::string_view version = trial.Get("metadata", "resourceVersion").as_string();
    if (options.resource_version && *options.resource_version != version) {
      co_return meta::NewConflict(options_.resource, name,
                                  "Precondition failed: ResourceVersion in precondition: " + *options.resource_version +
                                      ", ResourceVersion in object meta: " + std::string(version));
    }
    const bool deleting = trial.Get("metadata", "deletionTimestamp").is_string();
    if (options_.spec_finalizers && deleting && !trial.Get("spec", "finalizers").empty()) {
      co_return DeleteResult{.object = existing, .deleted = false};
    }
    if (marks && !options.uid) options.uid = std::string(uid);
    if (marks && !deleting) co_return co_await MarkDeletion(context, key, name, existing, options, validate);
  }
  KS_CO_TRY(const DeletePlan plan, BeforeDelete(context, trial, options));
  if (plan.pending) co_return DeleteResult{.object = existing, .deleted = false};
  const bool finalizers_change = UpdateDeletionFinalizers(arena, trial, options);
  const bool namespace_pending = options_.spec_finalizers && !trial.Get("spec", "finalizers").empty();
  const bool finalizers_pending = !trial.Get("metadata", "finalizers").empty() || namespace_pending;

  storage::Preconditions preconditions{.uid = options.uid, .resource_version = options.resource_version};
  bool zeroed_grace = false;
  if (plan.graceful || finalizers_pending || finalizers_change) {
    bool delete_now = false;
    bool pending = false;
    storage::UpdateFunc mark = [&](const ObjectPtr& current) -> Awaitable<meta::Result<storage::Updated>> {
      delete_now = pending = false;
      KS_CO_TRY(Value object, Decode(arena, current));
      if (validate) KS_CO_RETURN_IF_ERROR(co_await validate(object.Clone(arena)));
      const bool was_deleting = object.Get("metadata", "deletionTimestamp").is_string();
      KS_CO_TRY(const DeletePlan now, BeforeDelete(context, object, options));
      if (now.pending) {
        pending = true;
        co_return meta::NewInternalError("already being deleted");
      }
      UpdateDeletionFinalizers(arena, object, options);
      Value metadata = object["metadata"];
      const bool stays_for_finalizers =
          !metadata["finalizers"].empty() || (namespace_pending && !object.Get("spec", "finalizers").empty());
      if (!now.graceful) {
        if (!stays_for_finalizers) {
          delete_now = true;
          co_return meta::NewInternalError("deleted at once");
        }
        const auto moment = options_.clock->Now();
        const auto marked = ParseTime(metadata["deletionTimestamp"].as_string());
        if (!marked || *marked > moment)
          metadata.Set(arena, "deletionTimestamp", Value::String(arena, FormatTime(moment)));
        if (namespace_pending) {
          object.EnsureMap(arena, "status").Set(arena, "phase", "Terminating");
        } else {
          metadata.Set(arena, "deletionGracePeriodSeconds", 0);
          if (!was_deleting) BumpGeneration(arena, metadata);
        }
      } else if (metadata["deletionGracePeriodSeconds"].as_int() == 0 && !stays_for_finalizers) {
        zeroed_grace = true;
      }
      co_return storage::Updated{.object = object, .ttl_seconds = options_.ttl_seconds};
    };
    ObjectPtr marked;
    if (options.dry_run) {
      auto tried = co_await mark(existing);
      if (tried.ok()) {
        KS_CO_TRY(marked, Wrap(context, key, tried->object, existing->resource_version()));
      } else if (!delete_now && !pending) {
        co_return tried.error();
      }
    } else {
      auto updated = co_await options_.storage->GuaranteedUpdate(key, false, preconditions, mark, nullptr,
                                                                 context.caller());
      if (updated.ok()) {
        marked = *std::move(updated);
      } else if (!delete_now && !pending) {
        co_return InterpretError(updated.error(), "delete", name);
      }
    }
    if (pending) co_return DeleteResult{.object = existing, .deleted = false};
    if (marked && !zeroed_grace) co_return DeleteResult{.object = marked, .deleted = false};
    if (marked) {
      existing = marked;
      if (preconditions.resource_version) preconditions.resource_version = std::to_string(marked->resource_version());
    }
  }
  // A deletion without grace is admitted twice, as upstream: when the object is marked and when it goes.
  co_return co_await DeleteForReal(context, std::move(key), std::move(name), std::move(preconditions), validate,
                                   existing, zeroed_grace, options.dry_run);
}

Task<void> Store::DeleteCorrupt(std::string name_space, std::string name) const {
  KS_CO_TRY(const std::string key, KeyFor(name_space, name));
  auto got = co_await options_.storage->Get(key, {});
  if (got.ok() || got.error().code != storage::ErrorCode::kCorruptObject) {
    co_return meta::NewInvalid(
        {options_.resource.group, options_.resource.resource}, name,
        {{meta::FieldError::Type::kInvalid, "ignoreStoreReadErrorWithClusterBreakingPotential", "true",
          "is exclusively used to delete corrupt object(s), try again by removing this option"}});
  }
  auto deleted = co_await options_.storage->DeleteUnread(key);
  // Somebody else deleted it meanwhile: that is what was wanted.
  if (!deleted.ok() && deleted.error().code != storage::ErrorCode::kKeyNotFound)
    co_return InterpretError(deleted.error(), "delete", name);
  co_return meta::Result<void>();
}

namespace {

// What the workers of one deletion share. They all run on the request's thread: they overlap where they wait.
struct Deletion {
  const Store& store;
  request::Context& context;
  const DeleteOptions& options;
  const ValidateObject& validate;
  std::span<const ObjectPtr> items;
  std::size_t next = 0;
  std::size_t working = 0;
  std::optional<meta::Status> error;  // the first; the others stop
  async::Event done;
};

// The request as one of its objects sees it: with an arena of its own, so that the memory of a collection's deletion
// does not grow with the collection.
std::unique_ptr<request::Context> ContextOfOne(const request::Context& of) {
  auto context = std::make_unique<request::Context>();
  context->info = of.info;
  context->user = of.user;
  context->audit_id = of.audit_id;
  context->user_agent = of.user_agent;
  context->remote_address = of.remote_address;
  context->received = of.received;
  context->deadline = of.deadline;
  context->trace = of.trace;
  context->span = of.span;
  return context;
}

Awaitable<void> DeleteSome(std::shared_ptr<Deletion> deletion) {
  while (deletion->next < deletion->items.size() && !deletion->error) {
    const storage::Attributes& item = deletion->items[deletion->next++]->attributes();
    const auto context = ContextOfOne(deletion->context);
    auto deleted = co_await deletion->store.Delete(*context, std::string(item.name_space), std::string(item.name),
                                                   deletion->options, deletion->validate);
    deletion->context.latencies.Add(telemetry::LatencyTrackers::kEtcd,
                                    context->latencies.spent(telemetry::LatencyTrackers::kEtcd));
    if (!deleted.ok() && deleted.error().reason() != meta::StatusReason::kNotFound && !deletion->error) {
      deletion->error = deleted.error();
    }
  }
  if (--deletion->working == 0) deletion->done.Set();
}

// The first error, after the workers have stopped; some items may be gone by then.
Task<void> DeleteAll(const Store& store, request::Context& context, const DeleteOptions& options,
                     const ValidateObject& validate, std::span<const ObjectPtr> items, int workers) {
  auto deletion = std::make_shared<Deletion>(store, context, options, validate, items);
  deletion->working = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(workers, 1)), 1,
                                              std::max<std::size_t>(items.size(), 1));
  if (deletion->working == 1) {
    co_await DeleteSome(deletion);
  } else {
    auto executor = co_await asio::this_coro::executor;
    for (std::size_t i = deletion->working; i > 0; --i) asio::co_spawn(executor, DeleteSome(deletion), asio::detached);
    co_await deletion->done.Wait();
  }
  if (deletion->error) co_return *deletion->error;
  co_return meta::Result<void>();
}

}  // namespace

Task<storage::ObjectList> Store::DeleteCollection(request::Context& context, std::string name_space,
                                                  DeleteOptions options, storage::ListOptions list,
                                                  ValidateObject validate, int workers) const {
  const bool limited = list.predicate.limit > 0;
  storage::ObjectList all;
  if (!limited) list.predicate.limit = kDeleteCollectionPage;
  for (;;) {
    KS_CO_TRY(storage::ObjectList page, co_await List(name_space, list));
    // A path with an empty namespace lists them all, but what is in none cannot be deleted.
    if (options_.namespaced && name_space.empty() && !page.items.empty())
      co_return meta::NewBadRequest("Namespace parameter required.");
    KS_CO_RETURN_IF_ERROR(co_await DeleteAll(*this, context, options, validate, page.items, workers));
    all.items.insert(all.items.end(), page.items.begin(), page.items.end());
    all.resource_version = page.resource_version;
    if (limited) {
      all.continue_token = page.continue_token;
      all.remaining_item_count = page.remaining_item_count;
      co_return all;
    }
    if (page.continue_token.empty()) co_return all;
    list.predicate.continue_token = page.continue_token;
    list.resource_version.clear();
    list.resource_version_match.clear();
  }
}

}  // namespace keelson::registry
