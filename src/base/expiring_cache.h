// Values that are good for a fixed time. Bounded: the oldest goes first. For keys that are digests or otherwise small.
// Thread safety: all members from any thread.
#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"

namespace keelson::base {

template <class T>
class ExpiringCache {
 public:
  ExpiringCache(std::size_t entries_max, std::chrono::nanoseconds ttl, const Clock& clock)
      : entries_max_(entries_max), ttl_(ttl), clock_(clock) {}

  std::optional<T> Get(const std::string& key) const {
    const auto now = clock_.Monotonic();
    std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end() || found->second.until <= now) return std::nullopt;
    return found->second.value;
  }

  void Set(std::string key, T value) {
    const auto now = clock_.Monotonic();
    std::lock_guard lock(mutex_);
    // All live equally long, so the order of age is the order of expiry.
    while (!by_age_.empty() && (by_age_.front().first <= now || by_age_.size() >= entries_max_)) {
      const auto found = entries_.find(by_age_.front().second);
      if (found != entries_.end() && found->second.until == by_age_.front().first) entries_.erase(found);
      by_age_.pop_front();
    }
    by_age_.emplace_back(now + ttl_, key);
    entries_.insert_or_assign(std::move(key), Entry{std::move(value), now + ttl_});
  }

 private:
  struct Entry {
    T value;
    Clock::SteadyTime until;
  };
  const std::size_t entries_max_;
  const std::chrono::nanoseconds ttl_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  base::StringMap<Entry> entries_;
  std::deque<std::pair<Clock::SteadyTime, std::string>> by_age_;
};

}  // namespace keelson::base
