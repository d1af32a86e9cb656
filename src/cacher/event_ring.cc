#include "cacher/event_ring.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace keelson::cacher {

void HistoryBudget::Join(Keeper& keeper) {
  std::lock_guard lock(mutex_);
  keepers_.push_back(&keeper);
}

void HistoryBudget::Leave(Keeper& keeper) {
  std::lock_guard lock(mutex_);
  std::erase(keepers_, &keeper);
}

void HistoryBudget::Enforce() {
  using Time = base::Clock::SteadyTime;
  if (used() <= bytes_max) return;
  std::lock_guard lock(mutex_);
  // A sixteenth more than needed, so that not every event looks at all rings.
  const std::size_t wanted = bytes_max - bytes_max / 16;
  while (used() > wanted) {
    Keeper* oldest = nullptr;
    Time first = Time::max();
    Time second = Time::max();
    for (Keeper* keeper : keepers_) {
      const Time time = keeper->OldestHistory();
      if (time < first) {
        second = std::exchange(first, time);
        oldest = keeper;
      } else {
        second = std::min(second, time);
      }
    }
    if (oldest == nullptr) return;  // All are down to what they keep however large it is.
    oldest->GiveUpHistory(second, wanted);
  }
}

void EventRing::NoteOldest() {
  const bool spare = events_.size() > options_.capacity_min;
  oldest_.store(spare ? events_.front()->recorded : base::Clock::SteadyTime::max(), std::memory_order_relaxed);
}

void EventRing::GiveUp(base::Clock::SteadyTime until, std::size_t bytes_wanted, std::vector<EventPtr>& dropped) {
  while (events_.size() > options_.capacity_min && budget_.used() > bytes_wanted && events_.front()->recorded <= until)
    dropped.push_back(DropFront());
}

void EventRing::Reset(std::uint64_t since) {
  budget_.bytes.fetch_sub(history_bytes_, std::memory_order_relaxed);
  history_bytes_ = 0;
  begin_ = end();  // numbers are never used twice, so an old cursor cannot take a new event for its own
  events_.clear();
  since_ = since;
  capacity_ = options_.capacity_min;
  NoteOldest();
}

EventPtr EventRing::DropFront() {
  EventPtr event = std::move(events_.front());
  const std::size_t bytes = event->HistoryBytes();
  history_bytes_ -= bytes;
  budget_.bytes.fetch_sub(bytes, std::memory_order_relaxed);
  since_ = event->revision;
  events_.pop_front();
  ++begin_;
  NoteOldest();
  return event;
}

void EventRing::Expire(base::Clock::SteadyTime now, std::vector<EventPtr>& dropped) {
  while (events_.size() > options_.capacity_min && budget_.scarce() &&
         now - events_.front()->recorded > options_.window) {
    dropped.push_back(DropFront());
  }
}

void EventRing::Resize(base::Clock::SteadyTime now) {
  if (events_.size() < capacity_) return;
  const std::uint32_t before = capacity_;
  if (now - events_.front()->recorded < options_.window) {
    capacity_ = std::min(capacity_ * 2, options_.capacity_max);
  } else if (now - events_[events_.size() - capacity_ / 4]->recorded > options_.window) {
    capacity_ = std::max(capacity_ / 2, options_.capacity_min);
  }
  increases_ += capacity_ > before;
  decreases_ += capacity_ < before;
}

void EventRing::Append(EventPtr event) {
  KS_CHECK(events_.empty() || event->revision >= events_.back()->revision);
  Resize(event->recorded);
  while (events_.size() >= capacity_) DropFront();
  const std::size_t bytes = event->HistoryBytes();
  history_bytes_ += bytes;
  budget_.bytes.fetch_add(bytes, std::memory_order_relaxed);
  events_.push_back(std::move(event));
  NoteOldest();
}

std::uint64_t EventRing::Find(std::uint64_t revision) const {
  const auto found =
      std::upper_bound(events_.begin(), events_.end(), revision,
                       [](std::uint64_t wanted, const EventPtr& event) { return wanted < event->revision; });
  return begin_ + static_cast<std::uint64_t>(found - events_.begin());
}

}  // namespace keelson::cacher
