// Delivers changes to the watchers of one resource. Holds the event ring and the watchers; the reflector appends,
// connection threads poll. A watcher belongs to one group: those with one value of the trigger field (spec.nodeName),
// or with one scope (namespace, name). A change reaches the few groups it concerns by hash look-ups;
// all other watchers cost nothing, not even a wake-up. A group lists the numbers of the ring's events that concern it,
// so that its watchers skip the rest; the group of everything needs none. Thread safety: all members from any thread.
// Wake functions are called without a lock held.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_ref.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/ref.h"
#include "cacher/event_ring.h"
#include "cacher/snapshot.h"
#include "storage/interface.h"

namespace keelson::cacher {

struct WatchSelection {
  std::string prefix;  // prepared key; what is watched lies below it, or is it
  bool recursive = true;
  storage::SelectionPredicate predicate;
  std::optional<std::string> trigger;  // the value of the trigger field it insists on
  std::string scope_namespace;         // "" for all
  std::string scope_name;

  // How the change looks to the watcher; nullopt: it does not concern it.
  std::optional<storage::WatchEvent::Type> See(const CacheEvent& event) const;
  // Whether both see the same. Selectors are not compared: false wherever there are any.
  bool SameAs(const WatchSelection& other) const;
};
using WatchSelectionPtr = std::shared_ptr<const WatchSelection>;

class Dispatcher final : public HistoryBudget::Keeper {
 public:
  struct Options {
    std::string trigger_field;  // "" for none
    EventRingOptions ring;
    std::chrono::seconds bookmark_period{60};
  };
  struct Group;
  // One watch. Everything but the selection belongs to the dispatcher.
  struct Watcher : base::RefCounted {
    explicit Watcher(WatchSelectionPtr selection_in) : selection(std::move(selection_in)) {}
    const WatchSelectionPtr selection;  // shared by the watchers of a group with equal selectors
    std::function<void()> wake;         // set once, before it can wait

    // Guarded by the dispatcher's mutex.
    std::optional<base::Clock::SteadyTime> deadline;
    std::uint64_t id = 0;
    Group* group = nullptr;    // null once it is unregistered
    std::uint64_t cursor = 0;  // the first event not looked at yet
    std::uint64_t after = 0;   // only later revisions are sent
    std::uint64_t epoch = 0;   // of the dispatcher when it was registered; another one: closed
    bool waiting = false;
    bool bookmark_due = false;
    std::int64_t bookmark_second = 0;
    Watcher* previous = nullptr;  // among the group's waiting
    Watcher* next = nullptr;
  };
  using WatcherPtr = base::Ref<Watcher>;

  Dispatcher(const base::Clock& clock, HistoryBudget& budget, Options options);
  ~Dispatcher() override;

  // The reflector's side.
  // Forgets history and closes all watchers; `snapshot` is the state now, changes after `since` will be appended.
  void Reset(SnapshotPtr snapshot, std::uint64_t since);
  void CloseAll();
  // Makes `events` and the state after them visible to all watchers, in this order: state first, then events.
  void Append(std::vector<EventPtr> events, SnapshotPtr snapshot);

  // The readers' side.
  SnapshotPtr Current() const { return snapshot_.Load(); }
  // Current(), called afterwards, is not older.
  std::uint64_t revision() const { return revision_.load(std::memory_order_acquire); }
  // The state as it was at `revision`, made by undoing newer events; null when history does not reach back so far, or
  // not yet there.
  SnapshotPtr At(std::uint64_t revision) const;

  // Starts a watch after `revision`; nullopt: with the current state, which is put into `*initial`. Null when that
  // history is gone;
  // `*oldest` is then the revision it begins after. A watcher that allows bookmarks gets its last one shortly before
  // `deadline`.
  WatcherPtr Register(WatchSelection selection, std::optional<std::uint64_t> revision,
                      std::optional<base::Clock::SteadyTime> deadline, SnapshotPtr* initial, std::uint64_t* oldest);
  void Start(Watcher& watcher, std::function<void()> wake);
  void Unregister(Watcher& watcher);

  enum class Poll : std::uint8_t { kEvent, kBookmark, kPending, kClosed, kMissed };
  // The next event that concerns the watcher, and how; or the revision of a bookmark. kMissed: the ring has moved on
  // without it.
  Poll Next(Watcher& watcher, EventPtr& event, storage::WatchEvent::Type& type, std::uint64_t& revision);

  // Sends the bookmarks that are due; gives up old history while the budget is scarce. Call about once a second.
  void Tick();

  base::Clock::SteadyTime OldestHistory() const override { return ring_.oldest(); }
  void GiveUpHistory(base::Clock::SteadyTime until, std::size_t bytes_wanted) override;

  struct Figures {
    std::size_t events = 0;
    std::uint32_t capacity = 0;
    std::size_t history_bytes = 0;
    std::size_t watchers = 0;
    std::uint64_t since = 0;
    std::uint64_t increases = 0;
    std::uint64_t decreases = 0;
  };
  Figures figures() const;
  std::uint64_t wakes() const { return wakes_.load(std::memory_order_relaxed); }

 private:
  using Woken = std::vector<WatcherPtr>;
  Group* GroupFor(const WatchSelection& selection);
  void Tell(Group& group, std::uint64_t sequence, const CacheEvent& event, Woken& woken);
  void TellAll(std::uint64_t sequence, const CacheEvent& event, Woken& woken);
  void TakeFromWaiting(Watcher& watcher);
  // The snapshot becomes visible before its revision: a reader that has seen revision() gets a state at least as new.
  void Show(SnapshotPtr snapshot);
  void CloseAllLocked(Woken& woken);
  // `served`: the second whose bookmarks are being sent; the next one is in a later second.
  static constexpr std::int64_t kNoneServed = -1;
  static constexpr std::int64_t kNoBookmark = std::numeric_limits<std::int64_t>::max();
  bool IsIdle() const;  // Tick() has nothing to do
  void ScheduleBookmark(Watcher& watcher, std::int64_t served);
  void Wake(const Woken& woken);
  std::optional<std::uint64_t> NextSequence(Watcher& watcher, bool& missed) const;

  const base::Clock& clock_;
  HistoryBudget& budget_;
  const Options options_;

  mutable std::mutex mutex_;
  EventRing ring_;
  base::StringMap<std::unique_ptr<Group>> groups_;
  std::map<std::int64_t, std::vector<WatcherPtr>> bookmarks_;  // by the second they are due
  std::atomic<std::int64_t> next_bookmark_{kNoBookmark};       // the first of them
  std::size_t watchers_ = 0;
  std::uint64_t next_id_ = 0;
  std::uint64_t epoch_ = 0;  // counts CloseAll()

  base::AtomicRef<const Snapshot> snapshot_;
  std::atomic<std::uint64_t> revision_{0};
  std::atomic<std::uint64_t> wakes_{0};
};

}  // namespace keelson::cacher
