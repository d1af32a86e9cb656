#include "endpoints/watch_group.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace keelson::endpoints {

WatchGroup::Member::~Member() {
  std::lock_guard lock(group_->mutex_);
  group_->members_.erase(position_);
  if (group_->members_.empty()) group_->left_.notify_all();
}

void WatchGroup::Member::OnEnding(std::function<void()> wake) {
  {
    std::lock_guard lock(group_->mutex_);
    if (!state_->ending) {
      state_->wake = std::move(wake);
      return;
    }
  }
  wake();
}

std::unique_ptr<WatchGroup::Member> WatchGroup::Join() {
  std::lock_guard lock(mutex_);
  if (ending_) return nullptr;
  std::unique_ptr<Member> member(new Member(shared_from_this()));
  member->position_ = members_.insert(members_.end(), member->state_);
  return member;
}

bool WatchGroup::ending() const {
  std::lock_guard lock(mutex_);
  return ending_;
}

std::size_t WatchGroup::size() const {
  std::lock_guard lock(mutex_);
  return members_.size();
}

WatchGroup::Ended WatchGroup::End(std::chrono::nanoseconds grace) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + grace;
  std::unique_lock lock(mutex_);
  ending_ = true;
  Ended ended{.before = members_.size()};
  const std::vector<std::shared_ptr<Member::State>> states(members_.begin(), members_.end());
  const std::chrono::duration<double> seconds = grace;
  const double rate =
      seconds.count() > 0 ? std::max(kEndsPerSecondMin, static_cast<double>(states.size()) / seconds.count()) : 0;
  auto next = Clock::now();
  for (const auto& state : states) {
    state->ending = true;
    auto wake = std::exchange(state->wake, nullptr);
    lock.unlock();
    if (wake) wake();
    lock.lock();
    if (rate == 0) continue;
    next += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate));
    // The rest of the time for those who are left is waited for below, so an early end is not missed.
    left_.wait_until(lock, std::min(next, deadline), [this] { return members_.empty(); });
    if (members_.empty()) break;
  }
  left_.wait_until(lock, deadline, [this] { return members_.empty(); });
  ended.after = members_.size();
  return ended;
}

}  // namespace keelson::endpoints
