// Deletion: grace periods, finalizers, propagation, collections.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <span>

#include "async/event.h"
#include "registry/store.h"

namespace keelson::registry {
namespace {

constexpr std::int64_t kDeleteCollectionPage = 10000;

Task<void> ValidateStored(const Store& store, request::Context& context, const ValidateObject& validate,
                          ObjectPtr object) {
  if (!validate) co_return meta::Result<void>();
  KS_CO_TRY(const Value value, store.Decode(context.arena, object));
  co_return co_await validate(value);
}

// The deletion of one object on its way through GuaranteedUpdate's attempts. Lives in the frame that awaits them.
struct Marking {
  const Store& store;
  request::Context& context;
  const Call& call;
  const DeleteOptions& options;
  const ValidateObject& validate;
  DeletionPlan::Step step = DeletionPlan::Step::kRemove;  // of the last attempt
};

Awaitable<meta::Result<storage::Updated>> Mark(Marking& marking, ObjectPtr current) {
  base::Arena& arena = marking.context.arena;
  KS_CO_TRY(Value object, marking.store.Decode(arena, current));
  if (marking.validate) KS_CO_RETURN_IF_ERROR(co_await marking.validate(object.Clone(arena)));
  const Store::Options& kind = marking.store.options();
  KS_CO_TRY(const DeletionPlan plan, PlanDeletion(kind, marking.call, object, marking.options, kind.garbage_collector));
  marking.step = plan.step;
  using enum DeletionPlan::Step;
  if (plan.step == kRemove || plan.step == kPending)
    co_return storage::Updated{.object = {}, .ttl_seconds = {}, .action = storage::Updated::Action::kLeave};
  co_return storage::Updated{.object = object, .ttl_seconds = kind.ttl_seconds};
}

// A kind that marks its objects itself (definitions).
Awaitable<meta::Result<storage::Updated>> MarkByStrategy(const Marking& marking, ObjectPtr current) {
  base::Arena& arena = marking.context.arena;
  KS_CO_TRY(Value object, marking.store.Decode(arena, current));
  if (marking.validate) KS_CO_RETURN_IF_ERROR(co_await marking.validate(object.Clone(arena)));
  Value metadata = object["metadata"];
  if (!metadata["deletionTimestamp"].is_string())
    metadata.Set(arena, "deletionTimestamp", Value::String(arena, FormatTime(marking.call.clock.Now())));
  marking.store.rest_strategy().MarkDeletion(marking.call, object);
  co_return storage::Updated{.object = object};
}

}  // namespace

Task<DeleteResult> Store::Remove(request::Context& context, std::string key, std::string name, Removal removal) const {
  storage::ValidateDeletion check = [this, &context, &removal](const ObjectPtr& object) {
    return ValidateStored(*this, context, removal.validate, object);
  };
  auto deleted = co_await StorageFor(removal.dry_run)
                     .Delete(std::move(key), std::move(removal.preconditions), check, nullptr, context.caller());
  ObjectPtr gone = removal.existing;
  if (deleted.ok()) {
    // A dry run answers with the object as it was marked; storage has it unmarked.
    if (!removal.dry_run) gone = *std::move(deleted);
  } else if (!removal.ignore_not_found || deleted.error().code != storage::ErrorCode::kKeyNotFound) {
    co_return InterpretError(deleted.error(), "delete", name);
  }
  if (options_.after_delete && !removal.dry_run) {
    auto value = Decode(context.arena, gone);
    if (value.ok()) co_await options_.after_delete(context, *value);
  }
  co_return DeleteResult{.object = std::move(gone), .deleted = true};
}

Task<DeleteResult> Store::MarkDeletion(request::Context& context, std::string key, std::string name,
                                       DeleteOptions options, ValidateObject validate) const {
  std::vector<std::string> warnings;
  const Call call = MakeCall(context, warnings);
  const Marking marking{*this, context, call, options, validate};
  storage::Preconditions preconditions{.uid = options.uid, .resource_version = options.resource_version};
  auto written = co_await StorageFor(options.dry_run)
                     .GuaranteedUpdate(
                         std::move(key), false, std::move(preconditions),
                         [&marking](const ObjectPtr& current) { return MarkByStrategy(marking, current); }, nullptr,
                         context.caller());
  if (!written.ok()) co_return InterpretError(written.error(), "delete", name);
  co_return DeleteResult{.object = *std::move(written), .deleted = false};
}

meta::Result<void> Store::CheckDeletePreconditions(Value object, std::string_view name,
                                                   const DeleteOptions& options) const {
  const std::string_view uid = object.Get("metadata", "uid").as_string();
  if (options.uid && *options.uid != uid) {
    return meta::NewConflict(
        options_.resource, name,
        "Precondition failed: UID in precondition: " + *options.uid + ", UID in object meta: " + std::string(uid));
  }
  const std::string_view version = object.Get("metadata", "resourceVersion").as_string();
  if (options.resource_version && *options.resource_version != version) {
    return meta::NewConflict(options_.resource, name,
                             "Precondition failed: ResourceVersion in precondition: " + *options.resource_version +
                                 ", ResourceVersion in object meta: " + std::string(version));
  }
  return {};
}

Task<DeleteResult> Store::Delete(request::Context& context, std::string name_space, std::string name,
                                 DeleteOptions options, ValidateObject validate) const {
  using enum DeletionPlan::Step;
  // Upstream overrides Delete of the generic store, whose DeleteCollection does not see the override.
  if (strategy().delete_forbidden != nullptr && context.info.verb != "deletecollection") {
    const std::string_view why = strategy().delete_forbidden(name);
    if (!why.empty()) co_return meta::NewForbidden(options_.resource, name, why);
  }
  KS_CO_TRY(std::string key, KeyFor(name_space, name));
  auto got = co_await options_.storage->Get(key, {.caller = context.caller()});
  if (!got.ok()) co_return InterpretError(got.error(), "delete", name);
  ObjectPtr existing = *std::move(got);
  KS_CO_TRY(Value trial, Decode(context.arena, existing));

  const bool marks = options_.strategy->marks_deletion();
  if (options_.spec_finalizers || marks) {
    KS_CO_RETURN_IF_ERROR(CheckDeletePreconditions(trial, name, options));
    const bool deleting = trial.Get("metadata", "deletionTimestamp").is_string();
    // A namespace that is on its way out is left alone.
    if (options_.spec_finalizers && deleting && !trial.Get("spec", "finalizers").empty())
      co_return DeleteResult{.object = existing, .deleted = false};
    if (marks && !options.uid) options.uid = std::string(trial.Get("metadata", "uid").as_string());
    if (marks && !deleting) co_return co_await MarkDeletion(context, key, name, options, validate);
  }
  std::vector<std::string> warnings;
  const Call call = MakeCall(context, warnings);
  KS_CO_TRY(const DeletionPlan plan, PlanDeletion(options_, call, trial, options, options_.garbage_collector));
  if (plan.step == kPending) co_return DeleteResult{.object = existing, .deleted = false};

  Removal removal{.preconditions = {.uid = options.uid, .resource_version = options.resource_version},
                  .validate = validate,
                  .existing = existing,
                  .dry_run = options.dry_run};
  if (plan.step != kRemove || plan.finalizers_changed) {
    Marking marking{*this, context, call, options, validate};
    auto marked =
        co_await StorageFor(options.dry_run)
            .GuaranteedUpdate(
                key, false, removal.preconditions,
                [&marking](const ObjectPtr& current) { return Mark(marking, current); }, nullptr, context.caller());
    if (!marked.ok()) co_return InterpretError(marked.error(), "delete", name);
    if (marking.step == kPending) co_return DeleteResult{.object = existing, .deleted = false};
    if (marking.step == kMark) co_return DeleteResult{.object = *std::move(marked), .deleted = false};
    if (marking.step == kMarkThenRemove) {
      removal.ignore_not_found = true;
      removal.existing = *std::move(marked);
      auto& version = removal.preconditions.resource_version;
      if (version) version = std::to_string(removal.existing->resource_version());
    }
  }
  // A deletion without grace is admitted twice, as upstream: when the object is marked and when it goes.
  co_return co_await Remove(context, std::move(key), std::move(name), std::move(removal));
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
  // Deleted by another request meanwhile: success.
  if (!deleted.ok() && deleted.error().code != storage::ErrorCode::kKeyNotFound)
    co_return InterpretError(deleted.error(), "delete", name);
  co_return meta::Result<void>();
}

namespace {

// Shared state of the workers of one DELETE of a collection. They run on the request's thread and overlap while
// waiting.
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

// The request's context for one object: with a separate arena, so that the memory of a collection's deletion
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
    all.shard_selector = page.shard_selector;
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
