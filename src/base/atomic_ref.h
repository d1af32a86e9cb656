// A Ref that one thread replaces while others read it: how immutable snapshots are published.
// The lock is held for a pointer copy and one increment, never while anything is freed.
#pragma once

#include <atomic>
#include <thread>
#include <utility>

#include "base/ref.h"

namespace keelson::base {

// Thread safety: all members from any thread.
template <class T>
class AtomicRef {
 public:
  AtomicRef() = default;
  explicit AtomicRef(Ref<T> ref) : ref_(std::move(ref)) {}
  AtomicRef(const AtomicRef&) = delete;
  AtomicRef& operator=(const AtomicRef&) = delete;

  Ref<T> Load() const {
    Lock();
    Ref<T> copy = ref_;
    Unlock();
    return copy;
  }
  // Returns what was there.
  Ref<T> Exchange(Ref<T> next) {
    Lock();
    std::swap(ref_, next);
    Unlock();
    return next;
  }
  void Store(Ref<T> next) { Exchange(std::move(next)); }

 private:
  void Lock() const {
    for (int spins = 0; locked_.exchange(true, std::memory_order_acquire); ++spins) {
      if (spins > 64) std::this_thread::yield();
    }
  }
  void Unlock() const { locked_.store(false, std::memory_order_release); }

  mutable std::atomic<bool> locked_{false};
  Ref<T> ref_;
};

}  // namespace keelson::base
