#include "cacher/dispatcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/failpoint.h"

namespace keelson::cacher {
namespace {

constexpr std::size_t kSkippedMax = 1024;  // events a watcher may pass over in one Next() before others get their turn
constexpr auto kBeforeDeadline = std::chrono::seconds(2);

std::int64_t Second(base::Clock::SteadyTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

std::string TriggerKey(std::string_view value) { return "=" + std::string(value); }
std::string ScopeKey(std::string_view name_space, std::string_view name) {
  std::string key(name_space);
  return key.append("/").append(name);
}

}  // namespace

struct Dispatcher::Group {
  explicit Group(std::string key_in, bool everything_in) : key(std::move(key_in)), everything(everything_in) {}
  const std::string key;
  const bool everything;      // every event concerns it: the ring itself is its list
  std::uint64_t first = 0;    // `sequences` is complete from this number on
  std::uint64_t dropped = 0;  // the highest number that was in `sequences` and has left the ring
  std::deque<std::uint64_t> sequences;
  std::size_t watchers = 0;
  Watcher* waiting = nullptr;
  WatchSelectionPtr selection;  // of the watcher that came last: the next one often wants the same
};

std::optional<storage::WatchEvent::Type> WatchSelection::See(const CacheEvent& event) const {
  using Type = storage::WatchEvent::Type;
  const std::string_view key = event.either().key();
  if (recursive ? !key.starts_with(prefix) : key != prefix) return std::nullopt;
  const bool now = event.object && predicate.Matches(*event.object);
  const bool before = event.previous && predicate.Matches(*event.previous);
  if (now) return before ? Type::kModified : Type::kAdded;
  if (before) return Type::kDeleted;
  return std::nullopt;
}

bool WatchSelection::SameAs(const WatchSelection& other) const {
  return predicate.MatchesEverything() && other.predicate.MatchesEverything() &&
         predicate.allow_watch_bookmarks == other.predicate.allow_watch_bookmarks && prefix == other.prefix &&
         recursive == other.recursive && trigger == other.trigger && scope_namespace == other.scope_namespace &&
         scope_name == other.scope_name;
}

Dispatcher::Dispatcher(const base::Clock& clock, HistoryBudget& budget, Options options)
    : clock_(clock),
      budget_(budget),
      options_(std::move(options)),
      ring_(options_.ring, budget),
      snapshot_(base::MakeRef<Snapshot>()) {
  budget_.Join(*this);
}

Dispatcher::~Dispatcher() { budget_.Leave(*this); }

void Dispatcher::GiveUpHistory(base::Clock::SteadyTime until, std::size_t bytes_wanted) {
  std::vector<EventPtr> dropped;  // freed without the lock
  std::lock_guard lock(mutex_);
  ring_.GiveUp(until, bytes_wanted, dropped);
}

void Dispatcher::Wake(const Woken& woken) {
  wakes_.fetch_add(woken.size(), std::memory_order_relaxed);
  for (const WatcherPtr& watcher : woken) watcher->wake();
}

void Dispatcher::Show(SnapshotPtr snapshot) {
  const std::uint64_t revision = snapshot->revision;
  snapshot_.Store(std::move(snapshot));
  KS_FAILPOINT("cacher/dispatcher/show");
  revision_.store(revision, std::memory_order_release);
}

void Dispatcher::CloseAllLocked(Woken& woken) {
  ++epoch_;
  for (auto& [key, group] : groups_) {
    while (group->waiting != nullptr) {
      woken.emplace_back(group->waiting);
      TakeFromWaiting(*group->waiting);
    }
  }
}

void Dispatcher::CloseAll() {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    CloseAllLocked(woken);
  }
  Wake(woken);
}

void Dispatcher::Reset(SnapshotPtr snapshot, std::uint64_t since) {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    CloseAllLocked(woken);
    ring_.Reset(since);
    Show(std::move(snapshot));
  }
  Wake(woken);
}

void Dispatcher::TakeFromWaiting(Watcher& watcher) {
  KS_CHECK(watcher.waiting);
  watcher.waiting = false;
  (watcher.previous != nullptr ? watcher.previous->next : watcher.group->waiting) = watcher.next;
  if (watcher.next != nullptr) watcher.next->previous = watcher.previous;
  watcher.previous = watcher.next = nullptr;
}

void Dispatcher::Tell(Group& group, std::uint64_t sequence, const CacheEvent& event, Woken& woken) {
  if (!group.everything) {
    while (!group.sequences.empty() && group.sequences.front() < ring_.begin()) {
      group.dropped = group.sequences.front();
      group.sequences.pop_front();
    }
    group.sequences.push_back(sequence);
  }
  // A waiting watcher has seen everything before. Deciding here costs a few comparisons; waking it to decide costs a
  // thread switch.
  for (Watcher* watcher = group.waiting; watcher != nullptr;) {
    Watcher* const next = watcher->next;
    if (event.revision > watcher->after && watcher->selection->See(event)) {
      woken.emplace_back(watcher);
      TakeFromWaiting(*watcher);
    } else {
      watcher->cursor = sequence + 1;
    }
    watcher = next;
  }
}

void Dispatcher::TellAll(std::uint64_t sequence, const CacheEvent& event, Woken& woken) {
  if (groups_.empty()) return;
  const auto tell = [&](const std::string& key) {
    if (const auto found = groups_.find(key); found != groups_.end()) Tell(*found->second, sequence, event, woken);
  };
  if (!options_.trigger_field.empty()) {
    const auto value = [&](const ObjectPtr& object) {
      return object ? object->attributes().Field(options_.trigger_field) : std::string_view();
    };
    const std::string_view now = value(event.object);
    const std::string_view before = value(event.previous);
    if (event.object) tell(TriggerKey(now));
    if (event.previous && !(event.object && before == now)) tell(TriggerKey(before));
  }
  const storage::Attributes& attributes = event.either().attributes();
  tell(ScopeKey({}, {}));
  tell(ScopeKey({}, attributes.name));
  if (attributes.name_space.empty()) return;
  tell(ScopeKey(attributes.name_space, {}));
  tell(ScopeKey(attributes.name_space, attributes.name));
}

void Dispatcher::Append(std::vector<EventPtr> events, SnapshotPtr snapshot) {
  Woken woken;
  {
    std::lock_guard lock(mutex_);
    Show(std::move(snapshot));
    for (EventPtr& event : events) {
      const CacheEvent& told = *event;
      ring_.Append(std::move(event));
      TellAll(ring_.end() - 1, told, woken);
    }
  }
  budget_.Enforce();
  Wake(woken);
}

SnapshotPtr Dispatcher::At(std::uint64_t revision) const {
  SnapshotPtr now;
  std::vector<EventPtr> undo;  // oldest first
  {
    std::lock_guard lock(mutex_);
    now = snapshot_.Load();
    if (revision > now->revision || revision < ring_.since()) return nullptr;
    for (std::uint64_t at = ring_.Find(revision); at < ring_.end(); ++at) undo.push_back(ring_.at(at));
  }
  auto then = base::MakeRef<Snapshot>(now->objects, now->index, revision);
  for (auto event = undo.rbegin(); event != undo.rend(); ++event) {
    const CacheEvent& change = **event;
    if (change.object && !options_.trigger_field.empty()) {
      then->index.Erase({change.object->attributes().Field(options_.trigger_field), change.object->key()});
    }
    if (!change.previous) {
      then->objects.Erase(change.object->key());
      continue;
    }
    if (!options_.trigger_field.empty()) {
      then->index.Put({change.previous->attributes().Field(options_.trigger_field), change.previous});
    }
    then->objects.Put(change.previous);
  }
  return then;
}

Dispatcher::Group* Dispatcher::GroupFor(const WatchSelection& selection) {
  std::string key =
      selection.trigger ? TriggerKey(*selection.trigger) : ScopeKey(selection.scope_namespace, selection.scope_name);
  auto& group = groups_[key];
  if (!group) {
    const bool everything = key == ScopeKey({}, {});
    group = std::make_unique<Group>(std::move(key), everything);
    group->first = ring_.end();
  }
  return group.get();
}

Dispatcher::WatcherPtr Dispatcher::Register(WatchSelection selection, std::optional<std::uint64_t> revision,
                                            std::optional<base::Clock::SteadyTime> deadline, SnapshotPtr* initial,
                                            std::uint64_t* oldest) {
  std::lock_guard lock(mutex_);
  if (revision && *revision < ring_.since()) {
    *oldest = ring_.since();
    return nullptr;
  }
  if (!revision) *initial = snapshot_.Load();
  Group* const group = GroupFor(selection);
  if (!group->selection || !group->selection->SameAs(selection)) {
    group->selection = std::make_shared<const WatchSelection>(std::move(selection));
  }
  auto watcher = base::MakeRef<Watcher>(group->selection);
  watcher->deadline = deadline;
  watcher->cursor = revision ? ring_.Find(*revision) : ring_.end();
  watcher->after = revision ? *revision : (*initial)->revision;
  watcher->epoch = epoch_;
  watcher->id = next_id_++;
  watcher->group = group;
  ++group->watchers;
  ++watchers_;
  if (watcher->selection->predicate.allow_watch_bookmarks) ScheduleBookmark(*watcher, kNoneServed);
  return watcher;
}

void Dispatcher::Start(Watcher& watcher, std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  KS_CHECK(!watcher.wake);
  watcher.wake = std::move(wake);
}

void Dispatcher::Unregister(Watcher& watcher) {
  std::lock_guard lock(mutex_);
  if (watcher.group == nullptr) return;
  if (watcher.waiting) TakeFromWaiting(watcher);
  --watchers_;
  if (--watcher.group->watchers == 0) groups_.erase(watcher.group->key);
  watcher.group = nullptr;
}

void Dispatcher::ScheduleBookmark(Watcher& watcher, std::int64_t served) {
  const auto now = clock_.Monotonic();
  // Watchers that came together (after a restart, say) are spread over some seconds.
  auto due = now + options_.bookmark_period - std::chrono::seconds(watcher.id % 8);
  if (const auto deadline = watcher.deadline) {
    const auto last = *deadline - kBeforeDeadline;
    if (last > now && Second(last) > served) due = std::min(due, last);
  }
  watcher.bookmark_second = Second(due);
  bookmarks_[watcher.bookmark_second].emplace_back(&watcher);
  next_bookmark_.store(bookmarks_.begin()->first, std::memory_order_relaxed);
}

// Without the lock: thousands of caches are asked ten times a second.
bool Dispatcher::IsIdle() const {
  if (budget_.scarce()) return false;
  const std::int64_t next = next_bookmark_.load(std::memory_order_relaxed);
  return next == kNoBookmark || next > Second(clock_.Monotonic());
}

void Dispatcher::Tick() {
  if (IsIdle()) return;
  Woken woken;
  std::vector<EventPtr> expired;
  {
    std::lock_guard lock(mutex_);
    ring_.Expire(clock_.Monotonic(), expired);
    const std::int64_t now = Second(clock_.Monotonic());
    while (!bookmarks_.empty() && bookmarks_.begin()->first <= now) {
      const std::vector<WatcherPtr> due = std::move(bookmarks_.begin()->second);
      bookmarks_.erase(bookmarks_.begin());
      for (const WatcherPtr& watcher : due) {
        if (watcher->group == nullptr || watcher->epoch != epoch_) continue;
        watcher->bookmark_due = true;
        ScheduleBookmark(*watcher, now);
        if (!watcher->waiting) continue;
        TakeFromWaiting(*watcher);
        woken.push_back(watcher);
      }
    }
    next_bookmark_.store(bookmarks_.empty() ? kNoBookmark : bookmarks_.begin()->first, std::memory_order_relaxed);
  }
  Wake(woken);
}

// The number of the next event that may concern the watcher.
std::optional<std::uint64_t> Dispatcher::NextSequence(Watcher& watcher, bool& missed) const {
  const Group& group = *watcher.group;
  if (group.everything || watcher.cursor < group.first) {
    // The group's list does not reach back so far: look at each event once.
    if (watcher.cursor < ring_.begin()) {
      missed = true;
      return std::nullopt;
    }
    if (watcher.cursor == ring_.end()) return std::nullopt;
    return watcher.cursor;
  }
  const auto found = std::lower_bound(group.sequences.begin(), group.sequences.end(), watcher.cursor);
  // An event it had not seen may have left the ring: those the group dropped, and those still listed that the ring has
  // dropped since.
  if (watcher.cursor <= group.dropped || (found != group.sequences.end() && *found < ring_.begin())) {
    missed = true;
    return std::nullopt;
  }
  if (found == group.sequences.end()) return std::nullopt;
  return *found;
}

Dispatcher::Poll Dispatcher::Next(Watcher& watcher, EventPtr& event, storage::WatchEvent::Type& type,
                                  std::uint64_t& revision) {
  for (std::size_t skipped = 0;; ++skipped) {
    {
      std::lock_guard lock(mutex_);
      if (watcher.epoch != epoch_ || watcher.group == nullptr) return Poll::kClosed;
      bool missed = false;
      const auto sequence = NextSequence(watcher, missed);
      if (missed) {
        revision = ring_.since();
        return Poll::kMissed;
      }
      if (!sequence) {
        watcher.cursor = ring_.end();
        revision = revision_.load(std::memory_order_relaxed);
        if (watcher.bookmark_due && revision >= watcher.after) {
          watcher.bookmark_due = false;
          return Poll::kBookmark;
        }
        if (!watcher.waiting) {
          KS_CHECK(watcher.wake);
          watcher.waiting = true;
          watcher.previous = nullptr;
          watcher.next = watcher.group->waiting;
          if (watcher.next != nullptr) watcher.next->previous = &watcher;
          watcher.group->waiting = &watcher;
        }
        return Poll::kPending;
      }
      watcher.cursor = *sequence + 1;
      if (skipped < kSkippedMax)
        event = ring_.at(*sequence);
      else
        watcher.cursor = *sequence;
    }
    if (skipped == kSkippedMax) {
      watcher.wake();  // called from its own poll: comes back when the thread has served the others
      return Poll::kPending;
    }
    if (event->revision <= watcher.after) continue;
    if (const auto seen = watcher.selection->See(*event)) {
      type = *seen;
      return Poll::kEvent;
    }
  }
}

Dispatcher::Figures Dispatcher::figures() const {
  std::lock_guard lock(mutex_);
  return {.events = ring_.size(),
          .capacity = ring_.capacity(),
          .history_bytes = ring_.history_bytes(),
          .watchers = watchers_,
          .since = ring_.since(),
          .increases = ring_.increases(),
          .decreases = ring_.decreases()};
}

}  // namespace keelson::cacher
