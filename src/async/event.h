// Something that happens at most once per Reset and wakes whoever waits. For coroutines on different threads.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/this_coro.hpp>
#include <functional>
#include <mutex>
#include <vector>

#include "async/awaitable.h"
#include "async/parked.h"

namespace keelson::async {

// Thread safety: all members from any thread.
class Event {
 public:
  bool is_set() const {
    std::lock_guard lock(mutex_);
    return set_;
  }
  // Wakes all waiters, each on its own executor; later waiters do not wait.
  void Set() {
    std::vector<std::function<void()>> waiters;
    {
      std::lock_guard lock(mutex_);
      set_ = true;
      waiters.swap(waiters_);
    }
    for (auto& wake : waiters) wake();
  }
  void Reset() {
    std::lock_guard lock(mutex_);
    set_ = false;
  }
  // Calls `wake` once it is set: at once when it is already. `wake` must be quick.
  void OnSet(std::function<void()> wake) {
    {
      std::lock_guard lock(mutex_);
      if (!set_) {
        waiters_.push_back(std::move(wake));
        return;
      }
    }
    wake();
  }
  Awaitable<void> Wait() {
    auto executor = co_await asio::this_coro::executor;
    auto token = asio::use_awaitable;
    co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
        [this, executor](auto handler) { OnSet(ParkHandler<>(executor, std::move(handler))); }, token);
  }

 private:
  mutable std::mutex mutex_;
  bool set_ = false;
  std::vector<std::function<void()>> waiters_;
};

}  // namespace keelson::async
