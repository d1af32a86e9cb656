#include "cacher/reflector.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"
#include "kv/etcd_version.h"
#include "telemetry/log.h"

namespace keelson::cacher {
namespace {

constexpr std::int64_t kListPage = 10000;
constexpr int kCompactionRetries = 5;  // history may be compacted between learning how far it reaches and reading it

storage::Error Gone() { return storage::StatusError(meta::NewExpired("the history to follow was compacted")); }

}  // namespace

Reflector::Reflector(storage::Store& store, const base::Clock& clock, Dispatcher& dispatcher, Freshness& freshness,
                     CacherMetrics& metrics, const CacherOptions& options, const LabelDemand& label_demand)
    : store_(store),
      clock_(clock),
      dispatcher_(dispatcher),
      freshness_(freshness),
      metrics_(metrics),
      options_(options),
      label_demand_(label_demand),
      down_{.since = clock.Monotonic()} {}

std::string Reflector::PrefixKey() const { return store_.FullKey(store_.resource_prefix() + "/"); }

Reflector::Down Reflector::down() const {
  std::lock_guard lock(mutex_);
  return down_;
}

void Reflector::Fail(std::string error) {
  const bool was_ready = ready_.exchange(false, std::memory_order_acq_rel);
  std::lock_guard lock(mutex_);
  if (was_ready) down_.since = clock_.Monotonic();
  down_.error = std::move(error);
}

void Reflector::BecomeReady() {
  std::lock_guard lock(mutex_);
  if (!down_.stopped) ready_.store(true, std::memory_order_release);
}

void Reflector::Stop() {
  stopping_.store(true, std::memory_order_release);
  {
    std::lock_guard lock(mutex_);
    down_.stopped = true;
    if (watcher_) watcher_->Cancel();
  }
  ready_.store(false, std::memory_order_release);
}

void Reflector::RequestProgress() {
  std::lock_guard lock(mutex_);
  if (watcher_) watcher_->RequestProgress();
}

bool Reflector::OpenWatch(std::uint64_t from, bool prev_kv) {
  const std::string prefix = PrefixKey();
  auto watcher = store_.kv().Watch({.key = prefix,
                                    .range_end = kv::PrefixEnd(prefix),
                                    .start_revision = static_cast<kv::Revision>(from),
                                    .prev_kv = prev_kv,
                                    .progress_notify = true});
  std::lock_guard lock(mutex_);
  if (stopping_.load(std::memory_order_acquire)) return false;
  watcher_ = std::move(watcher);
  return true;
}

void Reflector::CloseWatch() {
  std::unique_ptr<kv::Watcher> old;
  std::lock_guard lock(mutex_);
  old = std::move(watcher_);
}

Awaitable<void> Reflector::Run() {
  while (!stopping_.load(std::memory_order_acquire)) {
    metrics_.initializations.fetch_add(1, std::memory_order_relaxed);
    co_await LearnProgressOrder();
    auto result = co_await List();
    std::string error;
    if (result.ok()) {
      result = co_await Follow();
    } else {
      error = "failed to list " + options_.object_type + ": " + result.error().ToString();
    }
    CloseWatch();
    if (stopping_.load(std::memory_order_acquire)) break;
    if (!result.ok())
      log::V(2).Info("Reflector failed", "type", options_.object_type, "err", result.error().ToString());
    Fail(std::move(error));
    dispatcher_.CloseAll();
    co_await freshness_.Sleep(options_.retry_period);
  }
  dispatcher_.CloseAll();
}

Awaitable<void> Reflector::LearnProgressOrder() {
  if (store_.kv().embedded()) co_return;
  const auto status = co_await store_.kv().Status();
  progress_ordered_.store(status.ok() && kv::ProgressOnRequestIsOrdered(status->version), std::memory_order_release);
}

Awaitable<storage::Result<void>> Reflector::List() {
  objects_.Clear();
  index_.Clear();
  labels_.Clear();
  replayed_.clear();
  const std::string prefix = PrefixKey();
  kv::RangeRequest request{.key = prefix, .range_end = kv::PrefixEnd(prefix), .limit = kListPage};
  for (;;) {
    const auto begun = std::chrono::steady_clock::now();
    auto page = co_await store_.kv().Range(request);
    if (storage::ResourceMetrics* const figures = store_.metrics()) figures->Requested("list", begun, page.ok());
    if (!page.ok()) co_return storage::FromKV(page.error(), prefix);
    if (request.revision == 0) request.revision = page->revision;
    for (kv::KeyValue& pair : page->kvs) {
      request.key = pair.key;
      auto opened = co_await store_.ObjectOf(std::move(pair));
      if (!opened.ok()) {
        storage::Error error = store_.ListError(request.key, opened.error());
        if (error.code != storage::ErrorCode::kCorruptObject) co_return error;
        co_return storage::StatusError(meta::NewStoreReadError(
            "failed to read one or more " + store_.codec().resource().ToString() + " from the storage"));
      }
      ObjectPtr object = *std::move(opened);
      if (!options_.trigger_field.empty()) index_.Put({object->attributes().Field(options_.trigger_field), object});
      objects_.Put(std::move(object));
    }
    if (!page->more) break;
    request.key.push_back('\0');
  }
  listed_ = applied_ = static_cast<std::uint64_t>(request.revision);
  co_return storage::Result<void>();
}

// After a list: reads what history there is, then follows for as long as nothing is missed.
Awaitable<storage::Result<void>> Reflector::Follow() {
  std::uint64_t from = listed_ > options_.replay_revisions_max ? listed_ - options_.replay_revisions_max + 1 : 1;
  if (!progress_ordered()) from = listed_ + 1;  // The end of history would not be reported.
  dispatcher_.Reset(base::MakeRef<Snapshot>(objects_, index_, listed_), from - 1);
  bool replaying = true;
  int compactions = 0;
  while (!stopping_.load(std::memory_order_acquire)) {
    // No history is left. Do not wait for a progress response: etcd reports the progress of a watch only when it has
    // reached the watch's start revision.
    if (replaying && from > listed_) {
      replaying = false;
      BecomeReady();
    }
    // Replayed history needs previous values from etcd; afterwards the state has them.
    if (!OpenWatch(from, replaying)) break;
    // Reports when everything up to now was delivered, also if there was nothing.
    RequestProgress();
    store_.SetReadBack(!replaying);
    auto ended = co_await FollowOnce(replaying);
    store_.SetReadBack(false);
    CloseWatch();
    if (stopping_.load(std::memory_order_acquire)) break;
    if (ended.ok()) {  // replayed
      replaying = false;
      from = applied_ + 1;
      BecomeReady();
      continue;
    }
    const kv::Error& error = ended.error();
    if (replaying && error.code == kv::ErrorCode::kCorrupt) {
      // The store has lost a value of history; the state itself was read. The error does not name the revision, so
      // half of what is left is given up at a time, at worst all of it: clients from before list again.
      from += (listed_ - from) / 2 + 1;
      log::Warning("History of the watch cache is damaged and begins later", "type", options_.object_type, "revision",
                   from, "err", error.message);
    } else if (error.code == kv::ErrorCode::kInternal || error.code == kv::ErrorCode::kCorrupt) {
      // A value that cannot be read. It may be deleted or overwritten soon, so the state before it is kept for a while.
      const auto now = clock_.Monotonic();
      if (!unreadable_since_) unreadable_since_ = now;
      if (replaying || now - *unreadable_since_ >= options_.unreadable_retry) {
        unreadable_since_.reset();
        co_return storage::StatusError(meta::NewPlainError(error.message));
      }
      co_await freshness_.Sleep(options_.retry_period);
    } else if (error.code == kv::ErrorCode::kCompacted) {
      const auto oldest = static_cast<std::uint64_t>(std::max<kv::Revision>(error.compact_revision, 0));
      if (!replaying || oldest > listed_ || ++compactions > kCompactionRetries) co_return Gone();
      from = oldest + 1;
    } else {
      // The connection, not the history: take it up again where it broke. Watchers stay.
      co_await freshness_.Sleep(options_.retry_period);
    }
    if (replaying) {
      replayed_.clear();
      dispatcher_.Reset(base::MakeRef<Snapshot>(objects_, index_, listed_), from - 1);
    } else {
      from = applied_ + 1;
    }
  }
  co_return storage::Result<void>();
}

// Until the watch fails; when replaying, until the state that was listed is reached. kInternal: what came could not be
// applied.
Awaitable<kv::Result<void>> Reflector::FollowOnce(bool replaying) {
  for (;;) {
    auto response = co_await watcher_->Next();
    if (!response.ok()) co_return std::move(response).error();
    auto applied = co_await Apply(*std::move(response));
    if (!applied.ok()) co_return kv::Error{.code = kv::ErrorCode::kInternal, .message = applied.error().ToString()};
    if (replaying && delivered_ >= listed_) {
      replayed_.clear();
      co_return kv::Result<void>();
    }
  }
}

void Reflector::Change(EventPtr event) {
  if (!options_.trigger_field.empty()) {
    if (event->previous)
      index_.Erase({event->previous->attributes().Field(options_.trigger_field), event->previous->key()});
    if (event->object) index_.Put({event->object->attributes().Field(options_.trigger_field), event->object});
  }
  labels_.Change(event->previous, event->object);
  if (event->object) {
    objects_.Put(event->object);
  } else {
    objects_.Erase(event->previous->key());
  }
}

void Reflector::Publish(std::vector<EventPtr> events, std::uint64_t revision) {
  metrics_.events_dispatched.fetch_add(events.size(), std::memory_order_relaxed);
  // The label indexes are built a part at a time: the next events or progress notification continue.
  if (labels_.Extend(label_demand_, objects_)) RequestProgress();
  dispatcher_.Append(std::move(events), base::MakeRef<Snapshot>(objects_, index_, revision, labels_));
  freshness_.Reached(revision);
}

// A change older than the list: only history, the state has it already. History begins after what cannot be read.
Awaitable<void> Reflector::Replay(kv::Event change, std::vector<EventPtr>& events) {
  auto event = base::MakeRef<CacheEvent>();
  event->revision = static_cast<std::uint64_t>(change.kv.mod_revision);
  event->recorded = clock_.Monotonic();
  std::string key = change.kv.key.substr(store_.path_prefix().size() - 1);
  ObjectPtr& last = replayed_[key];
  bool readable = true;
  if (change.prev_kv) {
    const bool known = last && last->resource_version() == static_cast<std::uint64_t>(change.prev_kv->mod_revision);
    if (known) {
      event->previous = last;
    } else if (auto opened = co_await store_.ObjectOf(*std::move(change.prev_kv)); opened.ok()) {
      event->previous = *std::move(opened);
    } else {
      readable = false;
    }
  } else if (!change.is_create()) {
    // A compaction at this very revision has taken the value before it. The changes before it may have shown it.
    event->previous = last;
    readable = last != nullptr;
  }
  if (change.type == kv::Event::Type::kPut) {
    const ObjectPtr* current = objects_.Find(key);
    if (current != nullptr && (*current)->resource_version() == event->revision) {
      event->object = *current;  // the very object that the state holds
    } else if (auto opened = co_await store_.ObjectOf(std::move(change.kv)); opened.ok()) {
      event->object = *std::move(opened);
    } else {
      readable = false;
    }
  }
  last = event->object;
  if (!readable) {
    events.clear();
    dispatcher_.Reset(base::MakeRef<Snapshot>(objects_, index_, listed_), event->revision);
    co_return;
  }
  events.push_back(std::move(event));
}

storage::Error Reflector::Unreadable(const storage::Store::Unreadable& why) const {
  return storage::StatusError(store_.WatchError(why, false));
}

// Decodes the put values. At an unreadable value `changes` ends before the transaction that wrote it.
Awaitable<storage::Result<void>> Reflector::Open(std::vector<kv::Event>& changes, std::vector<ObjectPtr>& opened) {
  opened.resize(changes.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    kv::KeyValue& pair = changes[i].kv;
    const kv::Revision revision = pair.mod_revision;
    if (changes[i].type != kv::Event::Type::kPut || static_cast<std::uint64_t>(revision) <= applied_) continue;
    const std::string key = pair.key;
    auto object = co_await store_.ObjectOf({.key = key,
                                            .value = std::move(pair.value),
                                            .create_revision = pair.create_revision,
                                            .mod_revision = revision,
                                            .version = pair.version,
                                            .lease = pair.lease});
    if (object.ok()) {
      opened[i] = *std::move(object);
      continue;
    }
    // A value overwritten or deleted since need not be read: no client has seen it.
    const auto later = std::span(changes).subspan(i + 1);
    if (std::ranges::any_of(later, [&](const kv::Event& next) { return next.kv.key == key; })) continue;
    const auto first =
        std::ranges::find_if(changes, [&](const kv::Event& change) { return change.kv.mod_revision >= revision; });
    changes.erase(first, changes.end());
    co_return Unreadable(object.error());
  }
  co_return storage::Result<void>();
}

Awaitable<storage::Result<void>> Reflector::Apply(kv::WatchResponse response) {
  std::vector<EventPtr> events;
  events.reserve(response.events.size());
  metrics_.events_received.fetch_add(response.events.size(), std::memory_order_relaxed);
  if (storage::ResourceMetrics* const figures = store_.metrics()) {
    figures->EventsReceived(response.events.size());
    if (response.is_progress()) figures->Bookmark();
  }
  std::vector<ObjectPtr> opened;
  auto readable = co_await Open(response.events, opened);
  for (std::size_t i = 0; i < response.events.size(); ++i) {
    kv::Event& change = response.events[i];
    const auto revision = static_cast<std::uint64_t>(change.kv.mod_revision);
    if (revision <= listed_) {
      co_await Replay(std::move(change), events);
      continue;
    }
    if (revision <= applied_) continue;
    auto event = base::MakeRef<CacheEvent>();
    event->revision = revision;
    event->recorded = clock_.Monotonic();
    const std::string key = change.kv.key.substr(store_.path_prefix().size() - 1);
    if (const ObjectPtr* previous = objects_.Find(key)) event->previous = *previous;
    event->object = std::move(opened[i]);
    if (change.type == kv::Event::Type::kPut && !event->object) continue;  // unreadable, and deleted since
    if (!event->object && !event->previous) continue;
    Change(event);
    events.push_back(std::move(event));
  }
  if (!readable.ok()) {
    // The state before it is what there is; the watch is taken up again from there.
    if (!events.empty()) applied_ = std::max(applied_, events.back()->revision);
    if (!events.empty()) Publish(std::move(events), applied_);
    co_return readable;
  }
  unreadable_since_.reset();
  delivered_ = static_cast<std::uint64_t>(response.revision);
  applied_ = std::max({applied_, delivered_, listed_});
  Publish(std::move(events), applied_);
  co_return storage::Result<void>();
}

}  // namespace keelson::cacher
