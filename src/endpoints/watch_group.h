// The watches that are being served, so that a shutdown can end them one after the other instead of all at once: their
// clients come back to another server, which should not get them in one moment.
// Thread safety: all members from any thread. Ownership: shared; members keep their group.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

namespace keelson::endpoints {

class WatchGroup : public std::enable_shared_from_this<WatchGroup> {
 public:
  static constexpr double kEndsPerSecondMin = 200;

  // One watch, from before it is opened until its source is gone.
  class Member {
   public:
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    // From now on `wake` is called when the watch shall end (at once when it shall already).
    void OnEnding(std::function<void()> wake);
    bool ending() const { return ending_; }

   private:
    friend class WatchGroup;
    explicit Member(std::shared_ptr<WatchGroup> group) : group_(std::move(group)) {}
    const std::shared_ptr<WatchGroup> group_;
    std::atomic<bool> ending_{false};
    // Under the group's mutex.
    std::function<void()> wake_;
    Member* previous_ = nullptr;  // in the order in which they joined
    Member* next_ = nullptr;
  };

  // Null once the group is ending.
  std::unique_ptr<Member> Join();
  bool ending() const;
  std::size_t size() const;

  struct Ended {
    std::size_t before = 0;
    std::size_t after = 0;  // still there when the time was over
  };
  // Refuses new members and ends those that are there, at most max(kEndsPerSecondMin, count / grace) each second, and
  // waits until all have left or `grace` is over. Without a grace period all are ended at once, without waiting.
  Ended End(std::chrono::nanoseconds grace);

 private:
  mutable std::mutex mutex_;
  std::condition_variable left_;
  bool ending_ = false;
  std::size_t size_ = 0;
  Member* first_ = nullptr;
  Member* last_ = nullptr;
  Member* next_to_end_ = nullptr;  // while End() is at work
};

}  // namespace keelson::endpoints
