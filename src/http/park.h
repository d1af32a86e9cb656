// A coroutine that sleeps in a slot until whoever empties the slot calls what was in it.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "async/awaitable.h"

namespace keelson::http {

// Goes on by way of its own executor, never inside the caller. Slot, sleeper and caller on one thread.
inline Awaitable<void> Park(std::function<void()>& slot) {
  auto executor = co_await asio::this_coro::executor;
  auto token = asio::use_awaitable;
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [&slot, executor](auto handler) {
        auto shared = std::make_shared<decltype(handler)>(std::move(handler));
        slot = [shared, executor] { asio::post(executor, [shared] { (*shared)(); }); };
      },
      token);
}

inline void Wake(std::function<void()>& slot) {
  if (auto waiter = std::exchange(slot, nullptr)) waiter();
}

}  // namespace keelson::http
