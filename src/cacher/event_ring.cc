#include "cacher/event_ring.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace keelson::cacher {

void EventRing::Reset(std::uint64_t since) {
  budget_.bytes.fetch_sub(history_bytes_, std::memory_order_relaxed);
  history_bytes_ = 0;
  begin_ = end();  // numbers are never used twice, so an old cursor cannot take a new event for its own
  events_.clear();
  since_ = since;
  capacity_ = options_.capacity_min;
}

EventPtr EventRing::DropFront() {
  EventPtr event = std::move(events_.front());
  const std::size_t bytes = event->HistoryBytes();
  history_bytes_ -= bytes;
  budget_.bytes.fetch_sub(bytes, std::memory_order_relaxed);
  since_ = event->revision;
  events_.pop_front();
  ++begin_;
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
  while (events_.size() > options_.capacity_min && budget_.bytes.load(std::memory_order_relaxed) > budget_.bytes_max)
    DropFront();
}

std::uint64_t EventRing::Find(std::uint64_t revision) const {
  const auto found =
      std::upper_bound(events_.begin(), events_.end(), revision,
                       [](std::uint64_t wanted, const EventPtr& event) { return wanted < event->revision; });
  return begin_ + static_cast<std::uint64_t>(found - events_.begin());
}

}  // namespace keelson::cacher
