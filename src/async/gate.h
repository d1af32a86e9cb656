// Counts background work so that its owner can wait for the end of it (Seastar's gate).
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace keelson::async {

// Thread safety: all members from any thread. Close() blocks: not on an I/O thread.
class Gate {
 public:
  class Entry {
   public:
    Entry(Entry&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Entry& operator=(Entry&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Entry() {
      if (gate_ != nullptr) gate_->Leave();
    }

   private:
    friend class Gate;
    explicit Entry(Gate* gate) : gate_(gate) {}
    Gate* gate_;
  };

  std::optional<Entry> Enter() {  // empty once the gate is closing
    std::lock_guard lock(mutex_);
    if (closed_) return std::nullopt;
    ++count_;
    return Entry(this);
  }
  void Close() {  // refuses new entries and waits until all have left
    std::unique_lock lock(mutex_);
    closed_ = true;
    empty_.wait(lock, [&] { return count_ == 0; });
  }

 private:
  void Leave() {
    std::lock_guard lock(mutex_);
    if (--count_ == 0) empty_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable empty_;
  std::size_t count_ = 0;
  bool closed_ = false;
};

}  // namespace keelson::async
