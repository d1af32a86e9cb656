// Recent writes of this process, and the objects made of them. A write is seen twice: by the request, which answers
// with the object, and by the watch cache, which gets the bytes from the store a moment before or after. The first of
// the two decodes, completes and makes the object; the second takes it. Bytes are recognised by their address, which
// cannot be another value's while it is held here. Thread safety: all members from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "base/shared_bytes.h"
#include "storage/object.h"

namespace keelson::storage {

class RecentWrites {
 public:
  static constexpr std::size_t kWritesMax = 64;  // that one side has not seen yet; older ones are forgotten

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
    writes_.push_back({std::move(stored), std::move(read), nullptr});
  }

  struct Known {
    Read read;
    ObjectPtr object;  // null: not made yet; make it and Share() it
  };
  // Nothing for bytes that were not put, or whose object both sides have.
  std::optional<Known> Find(const base::SharedBytes& stored) {
    if (!wanted_.load(std::memory_order_relaxed)) return std::nullopt;
    const std::lock_guard lock(mutex_);
    const auto at = At(stored);
    if (at == writes_.end()) return std::nullopt;
    if (!at->object) return Known{at->read, nullptr};
    Known known{std::move(at->read), std::move(at->object)};
    writes_.erase(at);
    return known;
  }
  // The object for both sides: `made`, or the one that the other side has made meanwhile.
  ObjectPtr Share(const base::SharedBytes& stored, ObjectPtr made) {
    const std::lock_guard lock(mutex_);
    const auto at = At(stored);
    if (at == writes_.end()) return made;
    if (!at->object) return at->object = std::move(made);
    ObjectPtr object = std::move(at->object);
    writes_.erase(at);
    return object;
  }
  // After a write that failed.
  void Forget(const base::SharedBytes& stored) {
    if (!wanted_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    if (const auto at = At(stored); at != writes_.end()) writes_.erase(at);
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return writes_.size();
  }

 private:
  struct Write {
    base::SharedBytes stored;
    Read read;
    ObjectPtr object;
  };
  // REQUIRES: the mutex.
  std::vector<Write>::iterator At(const base::SharedBytes& stored) {
    return std::ranges::find_if(writes_, [&](const Write& write) {
      return write.stored.data() == stored.data() && write.stored.size() == stored.size();
    });
  }

  std::atomic<bool> wanted_{false};
  mutable std::mutex mutex_;
  std::vector<Write> writes_;  // oldest first
};

}  // namespace keelson::storage
