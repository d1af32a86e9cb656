// The last events at the level Metadata, for live viewers. Events are recorded only while a viewer follows; otherwise a
// request pays one atomic load.
// Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "audit/event.h"
#include "base/shared_bytes.h"

namespace keelson::audit {

class Tail : public std::enable_shared_from_this<Tail> {
 public:
  static constexpr std::size_t kEventsMax = 1000;
  static constexpr std::size_t kBytesMax = std::size_t{4} * 1024 * 1024;         // of their text
  static constexpr std::size_t kURIBytesMax = 1024, kAnnotationBytesMax = 1024;  // of one event; the rest is cut
  static constexpr std::size_t kFollowersMax = 16;

  struct Entry {
    std::uint64_t number = 0;  // 1, 2, ...
    std::string user, verb, resource;
    base::SharedBytes line;  // JSON and a newline
  };
  using EntryPtr = std::shared_ptr<const Entry>;

  bool followed() const { return followers_ > 0; }
  // Payloads are left out, whatever the event's own level.
  void Add(const Event& event);

  // From its beginning to its end events are recorded.
  class Follower {
   public:
    using Place = std::list<std::function<void()>>::iterator;
    Follower(std::shared_ptr<Tail> tail, Place at) : tail_(std::move(tail)), at_(at) {}
    ~Follower();
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    // At most `most` entries with numbers above `after`, the oldest first.
    std::vector<EntryPtr> After(std::uint64_t after, std::size_t most) const;

   private:
    const std::shared_ptr<Tail> tail_;
    const Place at_;
  };
  bool full();  // there are kFollowersMax followers
  // `wake` is called after each event, quickly and from any thread. Null when full.
  std::unique_ptr<Follower> Follow(std::function<void()> wake);

 private:
  std::mutex mutex_;
  std::atomic<std::size_t> followers_{0};
  std::list<std::function<void()>> wakes_;
  std::deque<EntryPtr> entries_;
  std::size_t bytes_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace keelson::audit
