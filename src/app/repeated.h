// Awaits a function every now and then until it is destroyed.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>

#include "async/awaitable.h"
#include "async/event.h"

namespace keelson::app {

class Repeated {
 public:
  // The first time after `period`, or after `first`; a period of 0: never. `jitter`: up to this part of the period
  // longer, each time anew.
  Repeated(asio::any_io_executor executor, std::chrono::nanoseconds period, std::function<Awaitable<void>()> work,
           double jitter = 0, std::chrono::nanoseconds first = {});
  ~Repeated();  // waits for the work under way: not on the executor's thread
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

 private:
  struct State {
    std::atomic<bool> stopping{false};
    async::Event wake;
  };
  static Awaitable<void> Loop(std::shared_ptr<State> state, std::chrono::nanoseconds period, double jitter,
                              std::chrono::nanoseconds first, std::function<Awaitable<void>()> work);
  std::shared_ptr<State> state_;
  std::future<void> done_;
};

}  // namespace keelson::app
