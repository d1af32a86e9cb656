#include "endpoints/watch_group.h"

#include <algorithm>
#include <utility>

namespace keelson::endpoints {

WatchGroup::Member::~Member() {
  std::lock_guard lock(group_->mutex_);
  if (group_->next_to_end_ == this) group_->next_to_end_ = next_;
  (previous_ != nullptr ? previous_->next_ : group_->first_) = next_;
  (next_ != nullptr ? next_->previous_ : group_->last_) = previous_;
  if (--group_->size_ == 0) group_->left_.notify_all();
}

void WatchGroup::Member::OnEnding(std::function<void()> wake) {
  {
    std::lock_guard lock(group_->mutex_);
    if (!ending_) {
      wake_ = std::move(wake);
      return;
    }
  }
  wake();
}

std::unique_ptr<WatchGroup::Member> WatchGroup::Join() {
  std::lock_guard lock(mutex_);
  if (ending_) return nullptr;
  std::unique_ptr<Member> member(new Member(shared_from_this()));
  member->previous_ = last_;
  (last_ != nullptr ? last_->next_ : first_) = member.get();
  last_ = member.get();
  ++size_;
  return member;
}

bool WatchGroup::ending() const {
  std::lock_guard lock(mutex_);
  return ending_;
}

std::size_t WatchGroup::size() const {
  std::lock_guard lock(mutex_);
  return size_;
}

WatchGroup::Ended WatchGroup::End(std::chrono::nanoseconds grace) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + grace;
  std::unique_lock lock(mutex_);
  ending_ = true;
  Ended ended{.before = size_};
  const std::chrono::duration<double> seconds = grace;
  const double rate =
      seconds.count() > 0 ? std::max(kEndsPerSecondMin, static_cast<double>(ended.before) / seconds.count()) : 0;
  auto next = Clock::now();
  for (next_to_end_ = first_; next_to_end_ != nullptr;) {
    // Members leave while the lock is away; they take themselves out of the walk.
    Member& member = *next_to_end_;
    next_to_end_ = member.next_;
    member.ending_ = true;
    auto wake = std::exchange(member.wake_, nullptr);
    lock.unlock();
    if (wake) wake();
    lock.lock();
    if (rate == 0) continue;
    next += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / rate));
    // The remaining time is waited for below, so an early end is not missed.
    left_.wait_until(lock, std::min(next, deadline), [this] { return size_ == 0; });
    if (size_ == 0) break;
  }
  left_.wait_until(lock, deadline, [this] { return size_ == 0; });
  ended.after = size_;
  return ended;
}

}  // namespace keelson::endpoints
