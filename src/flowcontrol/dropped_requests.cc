#include "flowcontrol/dropped_requests.h"

#include <algorithm>

namespace keelson::flowcontrol {

std::int64_t DroppedRequests::Record(std::int64_t unix_second) {
  std::lock_guard lock(mutex_);
  if (current_.at == unix_second) {
    ++current_.count;
    return retry_after_;
  }
  Remember(current_);
  current_ = {unix_second, 1};
  Adjust(unix_second);
  return retry_after_;
}

std::int64_t DroppedRequests::retry_after() const {
  std::lock_guard lock(mutex_);
  return retry_after_;
}

void DroppedRequests::Remember(Second second) {
  history_.push_back(second);
  const std::int64_t window = std::min(2 * retry_after_, kRetryAfterMax);
  while (!history_.empty() && second.at - history_.front().at > window) history_.pop_front();
}

void DroppedRequests::Adjust(std::int64_t unix_second) {
  std::int64_t dropped = 0;  // in the last retry_after_ whole seconds
  for (auto it = history_.rbegin(); it != history_.rend() && unix_second - it->at <= retry_after_; ++it) {
    if (it->at < unix_second) dropped += it->count;
  }
  if (unix_second - increased_at_ >= retry_after_ && dropped >= 3 * retry_after_) {
    retry_after_ = std::min(2 * retry_after_, kRetryAfterMax);
    increased_at_ = unix_second;
  } else if (dropped < retry_after_ && retry_after_ > 1) {
    --retry_after_;
  }
}

}  // namespace keelson::flowcontrol
