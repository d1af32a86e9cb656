#include "cacher/cacher.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cmath>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "async/gate.h"
#include "base/check.h"
#include "cacher/dispatcher.h"
#include "cacher/freshness.h"
#include "cacher/reflector.h"
#include "cacher/watch_stream.h"
#include "storage/keys.h"
#include "storage/list_plan.h"
#include "storage/shard_filter.h"

namespace keelson::cacher {
namespace {

using storage::Error;
using storage::ListOptions;
using storage::ListPlan;
using storage::ObjectList;
using storage::ObjectPtr;
using storage::Result;
using storage::StatusError;

constexpr std::size_t kPagedSnapshotsMax = 16;  // states that lists in pages may come back to
constexpr auto kPagedSnapshotAge =
    std::chrono::seconds(75);  // older ones are rebuilt from history, or read from the store

// A selector reads an object, its list of labels and their texts, each behind the other and none of them in the
// processor's cache: fetched one by one that is most of a list's time. Prefetching a batch overlaps the cache
// misses.
constexpr std::size_t kBatch = 32;

void PrefetchAttributes(std::span<const ObjectPtr* const> batch) {
  for (const ObjectPtr* object : batch) {
    const storage::Attributes& attributes = (*object)->attributes();
    __builtin_prefetch(attributes.labels.data());
    __builtin_prefetch(attributes.fields.data());
  }
  for (const ObjectPtr* object : batch) {
    const storage::Attributes& attributes = (*object)->attributes();
    if (attributes.labels.empty()) continue;
    __builtin_prefetch(attributes.labels.front().first.data());
    __builtin_prefetch(attributes.labels.back().second.data());
  }
}

// Whether the predicate asks for nothing but one field's value: an index by that field has the answer.
bool IsSingleField(const storage::SelectionPredicate& predicate) {
  return (!predicate.label || predicate.label->Empty()) && !predicate.shard && predicate.field &&
         predicate.field->requirements().size() == 1;
}

Dispatcher::Options DispatcherOptions(const CacherOptions& options) {
  return {.trigger_field = options.trigger_field, .ring = options.ring};
}

bool IsTooLarge(const Error& error) { return error.status && error.status->reason() == meta::StatusReason::kTimeout; }

}  // namespace

struct Cacher::Impl {
  Impl(storage::Store& store_in, asio::any_io_executor executor_in, const base::Clock& clock_in, HistoryBudget& budget,
       CacherOptions options_in)
      : store(store_in),
        executor(std::move(executor_in)),
        clock(clock_in),
        options(std::move(options_in)),
        freshness(clock),
        dispatcher(std::make_shared<Dispatcher>(clock, budget, DispatcherOptions(options))),
        reflector(store, clock, *dispatcher, freshness, metrics, options, label_demand) {}

  storage::Store& store;
  const asio::any_io_executor executor;
  const base::Clock& clock;
  const CacherOptions options;
  CacherMetrics metrics;
  Freshness freshness;
  const std::shared_ptr<Dispatcher> dispatcher;  // streams hold it too
  LabelDemand label_demand;
  Reflector reflector;
  // Outlives this by the moment between letting Stop() go and being done with it.
  const std::shared_ptr<async::Gate> gate = std::make_shared<async::Gate>();
  bool started = false;
  std::atomic<std::uint64_t> compacted{0};
  std::atomic<bool> consistent{true};  // what the last comparison with the store found

  // States that a continue token names, newest last, so that the next page need not be made again by undoing history.
  struct Paged {
    SnapshotPtr snapshot;
    base::Clock::SteadyTime used;
  };
  std::mutex paged_mutex;
  std::vector<Paged> paged;
  std::atomic<bool> any_paged{false};  // so that a tick without any takes no lock

  Error NotReady() const {
    const Reflector::Down down = reflector.down();
    if (down.stopped) return StatusError(meta::NewTooManyRequests("apiserver cacher is stopped", 1));
    const double seconds = std::chrono::duration<double>(clock.Monotonic() - down.since).count();
    const auto retry = static_cast<std::int32_t>(std::clamp(std::exp(0.06 * std::min(seconds, 1000.0)), 1.0, 30.0));
    return StatusError(meta::NewTooManyRequests(
        "storage is (re)initializing" + (down.error.empty() ? std::string() : ": " + down.error), retry));
  }

  // Waits until the state is as new as `revision`.
  Awaitable<Result<void>> Fresh(std::uint64_t revision, telemetry::Span span) {
    // Nothing is locked here: the two trace events of upstream's watch cache are at the same moment.
    KS_CO_RETURN_IF_ERROR(co_await Reach(revision));
    span.AddEvent("watchCache locked acquired");
    span.AddEvent("watchCache fresh enough");
    co_return Result<void>();
  }

  Awaitable<Result<void>> Reach(std::uint64_t revision) {
    if (dispatcher->revision() >= revision) co_return Result<void>();
    reflector.RequestProgress();
    const auto begun = clock.Monotonic();
    const bool reached = co_await freshness.Wait(revision, options.fresh_timeout);
    if (storage::ResourceMetrics* const figures = store.metrics()) {
      figures->read_wait().Observe(std::chrono::duration<double>(clock.Monotonic() - begun).count());
    }
    if (!reached) co_return StatusError(meta::NewTooLargeResourceVersion(revision, dispatcher->revision(), 1));
    co_return Result<void>();
  }

  Awaitable<Result<void>> FreshNow(telemetry::Caller caller) {
    KS_CO_TRY(const std::uint64_t current, co_await store.CurrentResourceVersion(caller));
    if (!reflector.progress_ordered() && dispatcher->revision() < current) {
      co_return StatusError(meta::NewTooLargeResourceVersion(current, dispatcher->revision(), 1));
    }
    co_return co_await Fresh(current, caller.span);
  }

  // Admission lists quotas and limit ranges of namespaces that have none for every pod. Waiting for freshness would be
  // waiting until this cache has caught up with the writes of all other resources, so the embedded store is asked.
  bool LooksEmpty(const std::string& prefix, const ListOptions& list_options) const {
    if (!store.kv().embedded() || !list_options.recursive || list_options.caller.span.active()) return false;
    const SnapshotPtr snapshot = dispatcher->Current();
    return snapshot->objects.Rank(prefix) == snapshot->objects.Rank(kv::PrefixEnd(prefix));
  }

  // An empty list at the newest revision; nothing where something is below `full_key`.
  Awaitable<std::optional<ObjectList>> EmptyNow(std::string full_key) {
    const auto range =
        co_await store.kv().Range({.key = full_key, .range_end = kv::PrefixEnd(full_key), .count_only = true});
    if (!range.ok() || range->count != 0) co_return std::nullopt;
    metrics.lists.fetch_add(1, std::memory_order_relaxed);
    co_return ObjectList{.resource_version = static_cast<std::uint64_t>(range->revision)};
  }

  ObjectPtr Cached(std::string_view key) const {
    if (!reflector.ready()) return nullptr;
    const SnapshotPtr snapshot = dispatcher->Current();
    const ObjectPtr* found = snapshot->objects.Find(key);
    return found != nullptr ? *found : nullptr;
  }

  SnapshotPtr At(std::uint64_t revision) {
    if (revision < compacted.load(std::memory_order_relaxed)) return nullptr;
    if (!consistent.load(std::memory_order_acquire)) return nullptr;
    {
      std::lock_guard lock(paged_mutex);
      for (Paged& page : paged) {
        if (page.snapshot->revision != revision) continue;
        page.used = clock.Monotonic();
        return page.snapshot;
      }
    }
    return dispatcher->At(revision);
  }

  void Remember(const SnapshotPtr& snapshot) {
    std::lock_guard lock(paged_mutex);
    for (const Paged& page : paged) {
      if (page.snapshot->revision == snapshot->revision) return;
    }
    if (paged.size() == kPagedSnapshotsMax) paged.erase(paged.begin());
    paged.push_back({snapshot, clock.Monotonic()});
    any_paged.store(true, std::memory_order_relaxed);
  }

  void ForgetOldPages() {
    if (!any_paged.load(std::memory_order_relaxed)) return;
    const auto oldest = clock.Monotonic() - kPagedSnapshotAge;
    std::lock_guard lock(paged_mutex);
    std::erase_if(paged, [&](const Paged& page) { return page.used < oldest; });
    any_paged.store(!paged.empty(), std::memory_order_relaxed);
  }

  ObjectList ListFrom(const SnapshotPtr& snapshot, std::string_view key, std::string prefix, const ListPlan& plan,
                      const ListOptions& list_options);

  // A LIST by label that no index answered.
  void NoteLabelList(const meta::LabelSelector& selector, std::size_t objects) {
    const std::string_view label = EqualityKey(selector);
    if (!label.empty() && label_demand.Note(label, objects)) reflector.RequestProgress();
  }

  // Of a read: upstream's cacher.GetList, cacher.Watch.
  telemetry::Span StartSpan(const telemetry::Caller& caller, std::string_view name) const {
    const telemetry::Span& parent = caller.span;
    if (!parent.active()) return {};
    return parent.Start(name, {{"audit-id", parent.audit_id()}, {"type", store.codec().resource().ToString()}});
  }
};

ObjectList Cacher::Impl::ListFrom(const SnapshotPtr& snapshot, std::string_view key, std::string prefix,
                                  const ListPlan& plan, const ListOptions& list_options) {
  metrics.lists.fetch_add(1, std::memory_order_relaxed);
  ObjectList list{.resource_version = snapshot->revision};
  const storage::SelectionPredicate& predicate = list_options.predicate;
  if (!list_options.recursive) {
    const ObjectPtr* found = snapshot->objects.Find(prefix);
    if (found != nullptr && predicate.Matches(**found)) list.items.push_back(*found);
    return list;
  }
  // Any age is good enough for "0", so there is nothing to come back to: everything in one answer.
  const std::int64_t limit = list_options.resource_version == "0" && plan.start_key.empty() ? 0 : predicate.limit;
  const auto value = predicate.field && plan.start_key.empty() && !options.trigger_field.empty()
                         ? predicate.field->RequiresExactMatch(options.trigger_field)
                         : std::nullopt;
  const bool everything = predicate.MatchesEverything() || (value && IsSingleField(predicate));
  const std::string_view start = plan.start_key.empty() ? std::string_view(prefix) : std::string_view(plan.start_key);
  const LabelChoice by_label = predicate.label && !value && plan.start_key.empty()
                                   ? ChooseLabelIndex(snapshot->labels, *predicate.label, prefix)
                                   : LabelChoice();
  const bool indexed = value || by_label.tree != nullptr;
  SnapshotCursor cursor = value     ? SnapshotCursor::OfIndex(snapshot, prefix, *value)
                          : indexed ? SnapshotCursor::OfIndex(snapshot, *by_label.tree, prefix, by_label.value)
                                    : SnapshotCursor(snapshot, prefix, start);
  const auto count = static_cast<std::int64_t>(cursor.remaining());
  const telemetry::Span& span = list_options.caller.span;
  span.AddEvent("Listed items from cache", {{"count", count}});
  if (everything) list.items.reserve(static_cast<std::size_t>(limit > 0 ? std::min(limit, count) : count));
  const LabelFilter filter = predicate.label && !indexed ? LabelFilter(*predicate.label) : LabelFilter();
  bool has_more = false;
  std::size_t left = 0;  // unread, when the limit was reached
  for (bool more = true; more && !has_more;) {
    const ObjectPtr* batch[kBatch];
    std::size_t remaining[kBatch];
    std::size_t size = 0;
    while (size < kBatch) {
      batch[size] = filter.empty() ? cursor.Next() : cursor.Next(filter);
      if (batch[size] == nullptr) break;
      remaining[size] = cursor.remaining();
      __builtin_prefetch(batch[size]->get(), 1);
      ++size;
    }
    more = size == kBatch;
    if (!everything) PrefetchAttributes(std::span(batch, size));
    for (std::size_t i = 0; i < size && !has_more; ++i) {
      if (!everything && !predicate.Matches(**batch[i])) continue;
      list.items.push_back(*batch[i]);
      if (limit <= 0 || static_cast<std::int64_t>(list.items.size()) < limit || remaining[i] == 0) continue;
      has_more = true;
      left = remaining[i];
    }
  }
  if (predicate.label && !indexed) NoteLabelList(*predicate.label, static_cast<std::size_t>(count));
  const std::uint64_t fetched = static_cast<std::uint64_t>(count) - left;
  metrics.list_fetched_objects.fetch_add(fetched, std::memory_order_relaxed);
  if (value) {
    metrics.index_lists.fetch_add(1, std::memory_order_relaxed);
    metrics.index_list_fetched_objects.fetch_add(fetched, std::memory_order_relaxed);
  }
  metrics.list_returned_objects.fetch_add(list.items.size(), std::memory_order_relaxed);
  span.AddEvent("Resized result");
  span.AddEvent("Filtered items", {{"count", list.items.size()}});
  if (has_more) {
    storage::PageEnd end =
        storage::EndPage(list.items.back()->key(), key, snapshot->revision, count, true, list_options);
    list.continue_token = std::move(end.continue_token);
    list.remaining_item_count = end.remaining_item_count;
    Remember(snapshot);
  }
  return list;
}

Cacher::Cacher(storage::Store& store, asio::any_io_executor executor, const base::Clock& clock, HistoryBudget& budget,
               CacherOptions options)
    : impl_(std::make_unique<Impl>(store, std::move(executor), clock, budget, std::move(options))) {}

Cacher::~Cacher() { KS_CHECK(!impl_->started); }

void Cacher::Start() {
  KS_CHECK(!impl_->started);
  impl_->started = true;
  auto entry = impl_->gate->Enter();
  KS_CHECK(entry);
  asio::co_spawn(
      impl_->executor, impl_->reflector.Run(),
      [gate = impl_->gate, entry = std::make_shared<async::Gate::Entry>(*std::move(entry))](std::exception_ptr) {});
}

void Cacher::Stop() {
  if (!impl_->started) return;
  impl_->reflector.Stop();
  impl_->freshness.Stop();
  impl_->gate->Close();
  impl_->dispatcher->CloseAll();
  impl_->started = false;
}

void Cacher::Tick() {
  impl_->freshness.Tick();
  // etcd leaves a request unanswered while it still reads history for the watch, so the request is repeated while reads
  // wait for freshness, and at start, when progress means that history was read to its end.
  if (impl_->freshness.any_waiting() || !impl_->reflector.ready()) impl_->reflector.RequestProgress();
  impl_->dispatcher->Tick();
  impl_->ForgetOldPages();
}

void Cacher::Compacted(std::uint64_t revision) {
  impl_->compacted.store(revision, std::memory_order_relaxed);
  std::lock_guard lock(impl_->paged_mutex);
  std::erase_if(impl_->paged, [&](const Impl::Paged& page) { return page.snapshot->revision < revision; });
}

Awaitable<Result<bool>> Cacher::CheckConsistency() {
  constexpr std::int64_t kPage = 10'000;
  Impl& impl = *impl_;
  if (!impl.reflector.ready()) co_return impl.NotReady();
  const SnapshotPtr snapshot = impl.dispatcher->Current();
  SnapshotCursor ours(snapshot, impl.store.resource_prefix() + "/", "");
  const std::string prefix = impl.store.FullKey(impl.store.resource_prefix() + "/");
  kv::RangeRequest request{.key = prefix,
                           .range_end = kv::PrefixEnd(prefix),
                           .limit = kPage,
                           .revision = static_cast<kv::Revision>(snapshot->revision),
                           .keys_only = true};
  bool same = true;
  for (bool more = true; more && same;) {
    auto page = co_await impl.store.kv().Range(request);
    if (!page.ok()) co_return storage::FromKV(page.error(), prefix);
    for (const kv::KeyValue& pair : page->kvs) {
      const ObjectPtr* const object = ours.Next();
      same = object != nullptr && (*object)->resource_version() == static_cast<std::uint64_t>(pair.mod_revision) &&
             impl.store.FullKey((*object)->key()) == pair.key;
      if (!same) break;
      request.key = pair.key;
    }
    more = page->more;
    request.key.push_back('\0');
  }
  if (same) same = ours.Next() == nullptr;
  impl.consistent.store(same, std::memory_order_release);
  co_return same;
}

bool Cacher::Ready() const { return impl_->reflector.ready(); }
std::uint64_t Cacher::resource_version() const { return impl_->dispatcher->revision(); }
const CacherMetrics& Cacher::metrics() const { return impl_->metrics; }

Cacher::Figures Cacher::figures() const {
  const Dispatcher::Figures of = impl_->dispatcher->figures();
  return {.objects = impl_->dispatcher->Current()->objects.size(),
          .events = of.events,
          .ring_capacity = of.capacity,
          .history_bytes = of.history_bytes,
          .watchers = of.watchers,
          .wakes = impl_->dispatcher->wakes(),
          .capacity_increases = of.increases,
          .capacity_decreases = of.decreases};
}

Awaitable<Result<ObjectPtr>> Cacher::Create(std::string key, Value object, std::uint64_t ttl_seconds,
                                            telemetry::Caller caller) {
  return impl_->store.Create(std::move(key), object, ttl_seconds, caller);
}

Awaitable<Result<ObjectPtr>> Cacher::Delete(std::string key, storage::Preconditions preconditions,
                                            storage::ValidateDeletion validate, ObjectPtr, telemetry::Caller caller) {
  ObjectPtr cached = impl_->Cached(key);
  return impl_->store.Delete(std::move(key), std::move(preconditions), std::move(validate), std::move(cached), caller);
}

Awaitable<Result<void>> Cacher::DeleteUnread(std::string key) { return impl_->store.DeleteUnread(std::move(key)); }

Awaitable<Result<ObjectPtr>> Cacher::GuaranteedUpdate(std::string key, bool ignore_not_found,
                                                      storage::Preconditions preconditions, storage::UpdateFunc update,
                                                      ObjectPtr, telemetry::Caller caller) {
  ObjectPtr cached = impl_->Cached(key);
  return impl_->store.GuaranteedUpdate(std::move(key), ignore_not_found, std::move(preconditions), std::move(update),
                                       std::move(cached), caller);
}

Awaitable<Result<storage::Stats>> Cacher::GetStats() {
  if (!impl_->reflector.ready()) co_return co_await impl_->store.GetStats();
  SnapshotCursor cursor(impl_->dispatcher->Current(), impl_->store.resource_prefix() + "/", "");
  storage::Stats stats{.object_count = static_cast<std::int64_t>(cursor.remaining())};
  std::int64_t bytes = 0;
  while (const ObjectPtr* const object = cursor.Next()) bytes += static_cast<std::int64_t>((*object)->stored().size());
  if (stats.object_count > 0) stats.estimated_average_size = bytes / stats.object_count;
  co_return stats;
}
Awaitable<Result<std::uint64_t>> Cacher::GetCurrentResourceVersion() {
  return impl_->store.GetCurrentResourceVersion();
}

Awaitable<Result<ObjectPtr>> Cacher::Get(std::string key, storage::GetOptions options) {
  Impl& impl = *impl_;
  const telemetry::Span& parent = options.caller.span;
  const telemetry::ScopedSpan span = parent.active()
                                         ? parent.Start("cacher.Get", {{"audit-id", parent.audit_id()},
                                                                       {"key", key},
                                                                       {"resource-version", options.resource_version}})
                                         : telemetry::Span();
  options.caller.span = *span;
  if (options.resource_version.empty()) {
    span->AddEvent("About to Get from underlying storage");
    co_return co_await impl.store.GetLatest(key, impl.Cached(key), options.caller);
  }
  const auto wanted = storage::ParseResourceVersion(options.resource_version);
  if (!wanted.ok()) co_return StatusError(meta::NewPlainError(wanted.error()));
  if (!impl.reflector.ready()) {
    span->AddEvent("About to Get from underlying storage - cache not initialized and no resourceVersion set");
    co_return co_await impl.store.Get(std::move(key), std::move(options));
  }
  span->AddEvent("About to fetch object from cache");
  KS_CO_TRY(const std::string relative, storage::PrepareKey(impl.store.resource_prefix(), key, false));
  KS_CO_RETURN_IF_ERROR(co_await impl.Fresh(*wanted, *span));
  const SnapshotPtr snapshot = impl.dispatcher->Current();
  const ObjectPtr* found = snapshot->objects.Find(relative);
  if (found != nullptr) co_return *found;
  // "0" accepts any state, so "not found" may be stale: a client that just created the object must not get 404.
  if (*wanted == 0) co_return co_await impl.store.GetLatest(key, nullptr, options.caller);
  co_return Error{.code = storage::ErrorCode::kKeyNotFound, .key = impl.store.FullKey(relative)};
}

// The newest state of an object that is in the cache (most GETs), or for "0" the cached one.
ObjectPtr Cacher::TryGet(std::string_view key, const storage::GetOptions& options) {
  const bool any_age = options.resource_version == "0";
  if ((!any_age && !options.resource_version.empty()) || options.caller.span.active()) return nullptr;
  ObjectPtr cached = impl_->Cached(key);
  if (any_age || !cached) return cached;
  return impl_->store.TryGetLatest(key, cached, options.caller);
}

Awaitable<Result<ObjectList>> Cacher::GetList(std::string key, ListOptions options) {
  Impl& impl = *impl_;
  KS_CO_TRY(const std::string prefix, storage::PrepareKey(impl.store.resource_prefix(), key, options.recursive));
  KS_CO_TRY(const ListPlan plan, storage::ResolveListOptions(prefix, options));
  const bool exact = plan.exact_revision != 0;
  const bool continued = options.recursive && !options.predicate.continue_token.empty();
  if ((exact && !options.recursive) || ((exact || continued) && !impl.options.list_from_snapshots))
    co_return co_await impl.store.GetList(std::move(key), std::move(options));
  if (!impl.reflector.ready()) {
    if (options.predicate.Empty() && options.predicate.limit > 0) {
      co_return co_await impl.store.GetList(std::move(key), std::move(options));
    }
    co_return impl.NotReady();
  }
  const telemetry::ScopedSpan span = impl.StartSpan(options.caller, "cacher.GetList");
  options.caller.span = *span;
  span->AddEvent("Ready");
  if (exact) {
    if (plan.exact_revision > impl.dispatcher->revision())
      KS_CO_RETURN_IF_ERROR(co_await impl.Fresh(plan.exact_revision, *span));
    const SnapshotPtr snapshot = impl.At(plan.exact_revision);
    if (!snapshot) co_return co_await impl.store.GetList(std::move(key), std::move(options));
    co_return impl.ListFrom(snapshot, key, prefix, plan, options);
  }
  const bool any_age = !options.resource_version.empty() && plan.start_key.empty();
  if (any_age) {
    KS_CO_RETURN_IF_ERROR(co_await impl.Fresh(plan.not_older_than, *span));
    co_return impl.ListFrom(impl.dispatcher->Current(), key, prefix, plan, options);
  }
  impl.metrics.consistent_reads.fetch_add(1, std::memory_order_relaxed);
  if (plan.start_key.empty() && impl.LooksEmpty(prefix, options)) {
    if (auto empty = co_await impl.EmptyNow(impl.store.FullKey(prefix))) co_return *std::move(empty);
  }
  auto fresh = co_await impl.FreshNow(options.caller);
  if (!fresh.ok()) {
    if (!IsTooLarge(fresh.error())) {
      impl.metrics.consistent_read_failures.fetch_add(1, std::memory_order_relaxed);
      co_return std::move(fresh).error();
    }
    impl.metrics.consistent_read_fallbacks.fetch_add(1, std::memory_order_relaxed);
    auto list = co_await impl.store.GetList(std::move(key), std::move(options));
    if (!list.ok()) impl.metrics.consistent_read_fallback_failures.fetch_add(1, std::memory_order_relaxed);
    co_return list;
  }
  co_return impl.ListFrom(impl.dispatcher->Current(), key, prefix, plan, options);
}

Awaitable<Result<std::unique_ptr<storage::WatchStream>>> Cacher::Watch(std::string key, ListOptions options) {
  Impl& impl = *impl_;
  KS_CO_TRY(std::string prefix, storage::PrepareKey(impl.store.resource_prefix(), key, options.recursive));
  const auto parsed = storage::ParseResourceVersion(options.resource_version);
  if (!parsed.ok()) co_return StatusError(meta::NewPlainError(parsed.error()));
  if (!impl.reflector.ready()) co_return impl.NotReady();
  const telemetry::ScopedSpan span = impl.StartSpan(options.caller, "cacher.Watch");
  options.caller.span = *span;

  std::uint64_t required = *parsed;
  // Without ordered progress the initial events are those of the cache, however old, as upstream's without
  // RequestWatchProgress.
  if (options.resource_version.empty() && options.send_initial_events.has_value() &&
      impl.reflector.progress_ordered()) {
    KS_CO_TRY(required, co_await impl.store.CurrentResourceVersion(options.caller));
  }
  const bool initial = options.send_initial_events.value_or(required == 0);
  if (initial) {
    auto fresh = co_await impl.Fresh(required, *span);
    if (!fresh.ok())
      co_return NewErrorStream(fresh.error().status ? *fresh.error().status
                                                    : meta::NewInternalError(fresh.error().ToString()));
  }
  WatchSelection selection{.prefix = std::move(prefix),
                           .recursive = options.recursive,
                           .predicate = options.predicate,
                           .scope_namespace = options.scope_namespace,
                           .scope_name = options.scope_name};
  if (const auto& field = options.predicate.field) {
    if (!impl.options.trigger_field.empty()) {
      if (const auto value = field->RequiresExactMatch(impl.options.trigger_field))
        selection.trigger = std::string(*value);
    }
    if (const auto value = field->RequiresExactMatch("metadata.namespace");
        value && selection.scope_namespace.empty()) {
      selection.scope_namespace = *value;
    }
    if (const auto value = field->RequiresExactMatch("metadata.name"); value && selection.scope_name.empty())
      selection.scope_name = *value;
  }

  if (auto& shard = selection.predicate.shard) shard = shard->Counting(impl.metrics.shard_filtered_events);

  const bool end_bookmark = options.send_initial_events.value_or(false) && options.predicate.allow_watch_bookmarks;
  std::optional<std::uint64_t> after;
  if (!initial) after = required == 0 ? impl.dispatcher->revision() : required;
  std::uint64_t oldest = 0;
  SnapshotPtr snapshot;
  auto watcher = impl.dispatcher->Register(std::move(selection), after, options.deadline, &snapshot, &oldest);
  if (!watcher) co_return NewErrorStream(TooOldResourceVersion(*after, oldest));
  co_return NewCacheWatchStream(impl.dispatcher, std::move(watcher), impl.store, impl.metrics, std::move(snapshot),
                                end_bookmark, options.with_previous);
}

}  // namespace keelson::cacher
