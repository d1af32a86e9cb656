// Retry-After of one priority level's rejections: doubles while many requests are dropped, shrinks when few are.
// Thread safety: all members from any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

namespace keelson::flowcontrol {

class DroppedRequests {
 public:
  static constexpr std::int64_t kRetryAfterMax = 32;

  // Counts a drop in this second (since 1970) and returns the Retry-After, in seconds, for it.
  std::int64_t Record(std::int64_t unix_second);
  std::int64_t retry_after() const;

 private:
  struct Second {
    std::int64_t at;
    std::int64_t count;
  };
  void Remember(Second second);
  void Adjust(std::int64_t unix_second);

  mutable std::mutex mutex_;
  std::deque<Second> history_;  // at most kRetryAfterMax seconds back
  Second current_{0, 0};
  std::int64_t retry_after_ = 1;
  std::int64_t increased_at_ = 0;
};

}  // namespace keelson::flowcontrol
