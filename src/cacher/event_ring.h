// The recent changes of one resource, each kept once, oldest first, numbered without gaps.
//
//   begin()                                   end()
//     │ 41 │ 42 │ 43 │ 44 │ 45 │ 46 │ 47 │      ◄─ Append
//       ▲                   ▲
//       dropped next        a watcher's cursor is a number; one that is below begin() has missed something
//
// Thread safety: none; Dispatcher guards it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "base/atomic_ref.h"
#include "base/clock.h"
#include "base/ref.h"
#include "storage/object.h"

namespace keelson::cacher {

using storage::ObjectPtr;

// One change. Immutable except for the lazily made DELETED object of watchers whose selector no longer matches.
struct CacheEvent : base::RefCounted {
  ObjectPtr object;    // null: deleted
  ObjectPtr previous;  // null: created
  std::uint64_t revision = 0;
  base::Clock::SteadyTime recorded{};
  mutable base::AtomicRef<const storage::Object>
      gone;  // `previous` at `revision`: what a DELETED event shows. Made on first use.

  const storage::Object& either() const { return object ? *object : *previous; }
  // Bytes that only the history keeps alive because of this event.
  std::size_t HistoryBytes() const { return previous ? previous->MemoryBytes() : 0; }
};
using EventPtr = base::Ref<const CacheEvent>;

// Bytes of superseded objects that all rings together may keep. When they are too many, the oldest events of all go
// first, whosever they are: one busy resource does not take the history of the others, nor a quiet one keep it.
// Thread safety: all members from any thread. Lock order: a budget's mutex before those of its keepers.
class HistoryBudget {
 public:
  // Owner of a ring. Called by whichever thread ran out of room.
  class Keeper {
   public:
    virtual ~Keeper() = default;
    // When the oldest event was recorded that may be given up; SteadyTime::max() when there is none.
    virtual base::Clock::SteadyTime OldestHistory() const = 0;
    // Gives up events recorded not later than `until`, oldest first, while the budget is above `bytes_wanted`.
    virtual void GiveUpHistory(base::Clock::SteadyTime until, std::size_t bytes_wanted) = 0;
  };

  explicit HistoryBudget(std::size_t bytes_max_in) : bytes_max(bytes_max_in) {}

  void Join(Keeper& keeper);
  void Leave(Keeper& keeper);  // After it returns the keeper is not called any more.
  // Makes room when there is none, a little more than needed. REQUIRES: no keeper's lock is held.
  void Enforce();

  std::size_t used() const { return bytes.load(std::memory_order_relaxed); }
  // More than half is used: what is older than a ring's window makes room for others.
  bool scarce() const { return used() > bytes_max / 2; }

  std::atomic<std::size_t> bytes{0};
  const std::size_t bytes_max;

 private:
  std::mutex mutex_;
  std::vector<Keeper*> keepers_;
};

struct EventRingOptions {
  std::uint32_t capacity_min = 100;  // events; kept however many bytes they are
  std::uint32_t capacity_max = 100 * 1024;
  std::chrono::seconds window{75};  // younger events are dropped only above capacity_max or for the budget
};

class EventRing {
 public:
  EventRing(EventRingOptions options, HistoryBudget& budget)
      : options_(options), budget_(budget), capacity_(options.capacity_min) {}
  ~EventRing() { Reset(0); }

  // Forgets everything; changes after `since` are known from here on.
  void Reset(std::uint64_t since);
  // Keeps to capacity_max; the budget is the caller's. REQUIRES: event->revision is not below the last one's.
  void Append(EventPtr event);
  // While the budget is scarce: gives up events older than the window, so that a ring without changes does not keep
  // others short. They are moved to `dropped`, for the caller to free without a lock.
  void Expire(base::Clock::SteadyTime now, std::vector<EventPtr>& dropped);

  // Gives up events recorded not later than `until` while the budget is above `bytes_wanted`, as Expire() does.
  void GiveUp(base::Clock::SteadyTime until, std::size_t bytes_wanted, std::vector<EventPtr>& dropped);
  // When the oldest event was recorded that may be given up. From any thread.
  base::Clock::SteadyTime oldest() const { return oldest_.load(std::memory_order_relaxed); }

  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + events_.size(); }
  const EventPtr& at(std::uint64_t sequence) const { return events_[sequence - begin_]; }
  // Changes after this revision are all here.
  std::uint64_t since() const { return since_; }
  // The number of the first event after `revision`.
  std::uint64_t Find(std::uint64_t revision) const;

  std::size_t size() const { return events_.size(); }
  std::uint32_t capacity() const { return capacity_; }
  std::size_t history_bytes() const { return history_bytes_; }
  std::uint64_t increases() const { return increases_; }  // of the capacity, since it was made
  std::uint64_t decreases() const { return decreases_; }

 private:
  EventPtr DropFront();
  void NoteOldest();
  void Resize(base::Clock::SteadyTime now);

  const EventRingOptions options_;
  HistoryBudget& budget_;
  std::uint32_t capacity_;
  std::deque<EventPtr> events_;
  std::atomic<base::Clock::SteadyTime> oldest_{base::Clock::SteadyTime::max()};
  std::uint64_t begin_ = 1;
  std::uint64_t since_ = 0;
  std::size_t history_bytes_ = 0;
  std::uint64_t increases_ = 0;
  std::uint64_t decreases_ = 0;
};

}  // namespace keelson::cacher
