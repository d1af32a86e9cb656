// Cancels work whose result is no longer needed: the client of a request has gone, or its deadline has passed.
// One Cancellation per request; it is set at most once. A long wait (a call out, a queue, a change in storage)
// registers a callback that ends it.
// Thread safety: all members from any thread. Callbacks run on the cancelling thread and must be quick.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace keelson::async {

class Cancellation : public std::enable_shared_from_this<Cancellation> {
 public:
  // Forgets the callback when it is destroyed. A call that is under way on another thread may still finish.
  class Registration {
   public:
    Registration() = default;
    Registration(Registration&& other) noexcept : owner_(std::move(other.owner_)), id_(other.id_) {}
    Registration& operator=(Registration&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(id_, other.id_);
      return *this;
    }
    ~Registration() {
      if (owner_ != nullptr) owner_->Forget(id_);
    }

   private:
    friend class Cancellation;
    Registration(std::shared_ptr<Cancellation> owner, std::uint64_t id) : owner_(std::move(owner)), id_(id) {}
    std::shared_ptr<Cancellation> owner_;
    std::uint64_t id_ = 0;
  };

  static std::shared_ptr<Cancellation> New() { return std::make_shared<Cancellation>(); }

  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }

  void Cancel() {
    std::vector<std::pair<std::uint64_t, std::function<void()>>> callbacks;
    {
      std::lock_guard lock(mutex_);
      if (cancelled_.exchange(true, std::memory_order_acq_rel)) return;
      callbacks.swap(callbacks_);
    }
    for (auto& [id, callback] : callbacks) callback();
  }

  // Calls `callback` once on cancellation: at once when it has already happened.
  [[nodiscard]] Registration OnCancel(std::function<void()> callback) {
    {
      std::lock_guard lock(mutex_);
      if (!cancelled_.load(std::memory_order_relaxed)) {
        callbacks_.emplace_back(++last_id_, std::move(callback));
        return Registration(shared_from_this(), last_id_);
      }
    }
    callback();
    return {};
  }

 private:
  void Forget(std::uint64_t id) {
    std::lock_guard lock(mutex_);
    std::erase_if(callbacks_, [id](const auto& held) { return held.first == id; });
  }

  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::uint64_t last_id_ = 0;
  std::vector<std::pair<std::uint64_t, std::function<void()>>> callbacks_;
};

using CancellationPtr = std::shared_ptr<Cancellation>;  // null: never cancelled

}  // namespace keelson::async
