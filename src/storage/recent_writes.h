// Read-back results of bytes that this process has just written: the watch cache gets these bytes from the store a
// moment later and need not decode, complete and compress them once more. They are recognised by their address, which
// cannot be another value's while it is held here. Thread safety: all members from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "base/shared_bytes.h"

namespace keelson::storage {

class RecentWrites {
 public:
  static constexpr std::size_t kWritesMax = 64;  // between being written and being read back; older ones are forgotten

  struct Read {
    base::SharedBytes normalized;  // empty: the bytes themselves
    bool current = true;           // writing the object again would write the same
  };

  // Whether somebody reads back what is written: otherwise nothing is kept.
  void SetWanted(bool wanted) {
    wanted_.store(wanted, std::memory_order_relaxed);
    if (wanted) return;
    const std::lock_guard lock(mutex_);
    writes_.clear();
  }
  // Before `stored` is written.
  void Put(base::SharedBytes stored, Read read) {
    if (!wanted_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (writes_.size() == kWritesMax) writes_.erase(writes_.begin());
    writes_.push_back({std::move(stored), std::move(read)});
  }
  // Once: nothing for bytes that were not put, or have been taken.
  std::optional<Read> Take(const base::SharedBytes& stored) {
    if (!wanted_.load(std::memory_order_relaxed)) return std::nullopt;
    const std::lock_guard lock(mutex_);
    for (auto at = writes_.begin(); at != writes_.end(); ++at) {
      if (at->stored.data() != stored.data() || at->stored.size() != stored.size()) continue;
      std::optional<Read> read = std::move(at->read);
      writes_.erase(at);
      return read;
    }
    return std::nullopt;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return writes_.size();
  }

 private:
  struct Write {
    base::SharedBytes stored;
    Read read;
  };
  std::atomic<bool> wanted_{false};
  mutable std::mutex mutex_;
  std::vector<Write> writes_;  // oldest first
};

}  // namespace keelson::storage
