#include "cacher/freshness.h"

#include <algorithm>
#include <utility>

namespace keelson::cacher {

Awaitable<bool> Freshness::Wait(std::uint64_t revision, base::Clock::SteadyTime::duration timeout) {
  auto waiter = std::make_shared<Waiter>();
  waiter->revision = revision;
  waiter->deadline = clock_.Monotonic() + timeout;
  {
    std::lock_guard lock(mutex_);
    if (revision_ >= revision) co_return true;
    if (stopped_) co_return false;
    waiters_.push_back(waiter);
    any_.store(true, std::memory_order_release);
  }
  co_await waiter->done.Wait();
  co_return waiter->reached;
}

Awaitable<void> Freshness::Sleep(base::Clock::SteadyTime::duration duration) { co_await Wait(kNever, duration); }

template <class Predicate>
void Freshness::Finish(Predicate predicate, bool reached) {
  std::vector<std::shared_ptr<Waiter>> done;
  {
    std::lock_guard lock(mutex_);
    const auto rest =
        std::partition(waiters_.begin(), waiters_.end(), [&](const auto& waiter) { return !predicate(*waiter); });
    done.assign(std::make_move_iterator(rest), std::make_move_iterator(waiters_.end()));
    waiters_.erase(rest, waiters_.end());
    any_.store(!waiters_.empty(), std::memory_order_release);
  }
  for (const auto& waiter : done) {
    waiter->reached = reached;
    waiter->done.Set();
  }
}

void Freshness::Reached(std::uint64_t revision) {
  {
    std::lock_guard lock(mutex_);
    revision_ = std::max(revision_, revision);
    if (waiters_.empty()) return;
  }
  Finish([&](const Waiter& waiter) { return waiter.revision <= revision; }, true);
}

void Freshness::Tick() {
  if (!any_.load(std::memory_order_acquire)) return;
  const auto now = clock_.Monotonic();
  Finish([&](const Waiter& waiter) { return waiter.deadline <= now; }, false);
}

void Freshness::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  Finish([](const Waiter&) { return true; }, false);
}

bool Freshness::any_waiting() const {
  if (!any_.load(std::memory_order_acquire)) return false;
  std::lock_guard lock(mutex_);
  return std::any_of(waiters_.begin(), waiters_.end(), [](const auto& waiter) { return waiter->revision != kNever; });
}

}  // namespace keelson::cacher
