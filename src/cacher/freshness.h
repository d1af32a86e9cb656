// Coroutines that wait until a revision is reached or a time has come. Time passes only through Tick().
// Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "async/awaitable.h"
#include "async/event.h"
#include "base/clock.h"

namespace keelson::cacher {

class Freshness {
 public:
  explicit Freshness(const base::Clock& clock) : clock_(clock) {}

  // True once Reached() was called with `revision` or more; false after `timeout`, or when stopped.
  Awaitable<bool> Wait(std::uint64_t revision, base::Clock::SteadyTime::duration timeout);
  // Until then, or until stopped.
  Awaitable<void> Sleep(base::Clock::SteadyTime::duration duration);
  void Reached(std::uint64_t revision);
  void Tick();  // ends the waits that have timed out
  void Stop();  // ends all, and every later one at once
  bool any_waiting() const;

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  struct Waiter {
    std::uint64_t revision;
    base::Clock::SteadyTime deadline;
    bool reached = false;
    async::Event done;
  };
  template <class Predicate>
  void Finish(Predicate predicate, bool reached);

  const base::Clock& clock_;
  mutable std::mutex mutex_;
  std::uint64_t revision_ = 0;
  bool stopped_ = false;
  std::vector<std::shared_ptr<Waiter>> waiters_;
  std::atomic<bool> any_{false};  // waiters_ is not empty: a tick of thousands of idle caches takes no lock
};

}  // namespace keelson::cacher
