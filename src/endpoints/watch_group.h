// The watches that are being served, so that a shutdown can end them one after the other instead of all at once: their
// clients come back to another server, which should not get them in one moment.
// Thread safety: all members from any thread. Ownership: shared; members keep their group.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
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
    bool ending() const { return state_->ending; }

   private:
    friend class WatchGroup;
    struct State {
      std::atomic<bool> ending{false};
      std::function<void()> wake;  // under the group's mutex
    };
    explicit Member(std::shared_ptr<WatchGroup> group) : group_(std::move(group)) {}
    std::shared_ptr<WatchGroup> group_;
    std::shared_ptr<State> state_ = std::make_shared<State>();
    std::list<std::shared_ptr<State>>::iterator position_;
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
  // waits until all have left or `grace` is over. Without a grace all are told at once and nobody waits.
  Ended End(std::chrono::nanoseconds grace);

 private:
  mutable std::mutex mutex_;
  std::condition_variable left_;
  bool ending_ = false;
  std::list<std::shared_ptr<Member::State>> members_;
};

}  // namespace keelson::endpoints
