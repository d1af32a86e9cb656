// A coroutine that waits for a callback from another thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>
#include <functional>
#include <utility>

#include "async/awaitable.h"

namespace keelson::async {

template <class T>
using Callback = std::move_only_function<void(T)>;

// Calls start(callback) and waits until the callback is called, once, from any thread; resumes on the coroutine's
// executor. `interrupt` is called when the coroutine is cancelled meanwhile; it has to see to it that the callback is
// called.
template <class T, class Start, class Interrupt>
Awaitable<T> Suspend(Start start, Interrupt interrupt) {
  auto executor = asio::prefer(co_await asio::this_coro::executor, asio::execution::outstanding_work.tracked);
  auto token = asio::use_awaitable;
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(T)>(
      [executor](auto handler, Start inner, Interrupt on_cancel) {
        auto slot = asio::get_associated_cancellation_slot(handler);
        if (slot.is_connected()) slot.assign([on_cancel](asio::cancellation_type) mutable { on_cancel(); });
        inner(Callback<T>([executor, slot, handler = std::move(handler)](T result) mutable {
          asio::post(executor, [slot, handler = std::move(handler), result = std::move(result)]() mutable {
            if (slot.is_connected()) slot.clear();
            std::move(handler)(std::move(result));
          });
        }));
      },
      token, std::move(start), std::move(interrupt));
}

template <class T, class Start>
Awaitable<T> Suspend(Start start) {
  return Suspend<T>(std::move(start), [] {});
}

}  // namespace keelson::async
