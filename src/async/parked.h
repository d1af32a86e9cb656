// Handlers that wait for a callback and belong to the execution context they will resume on, like handlers of Asio's
// own operations: a context that ends destroys them. A callback that owned its handler would keep the coroutine behind
// it alive, and with it everything the coroutine holds, such as the connection that holds the callback.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "async/awaitable.h"

namespace keelson::async {

class ParkingLot;

// One parked handler. Thread safety: all members from any thread.
class Parked : public std::enable_shared_from_this<Parked> {
 public:
  explicit Parked(const asio::any_io_executor& executor);
  virtual ~Parked() = default;
  Parked(const Parked&) = delete;
  Parked& operator=(const Parked&) = delete;

  void Enter();  // once; from here on the end of the context drops the handler
  bool Leave();  // true for the one caller that may use the handler

 private:
  friend class ParkingLot;
  virtual void Drop() = 0;  // destroys the handler

  const std::shared_ptr<ParkingLot> lot_;
  Parked* next_ = nullptr;
  Parked* previous_ = nullptr;
  bool in_lot_ = false;
};

// Gives `handler` to the context of `executor` and returns a callback that resumes it there, by a post and at most
// once. The handler is destroyed when the context ends or when the last copy of an unused callback goes.
template <class... Args, class Handler>
std::function<void(Args...)> ParkHandler(const asio::any_io_executor& executor, Handler handler) {
  class Node final : public Parked {
   public:
    Node(const asio::any_io_executor& to, Handler&& waiting)
        : Parked(to), executor_(to), handler_(std::move(waiting)) {}
    ~Node() override { Leave(); }
    void Resume(Args... args) {
      if (!Leave()) return;
      asio::post(executor_, [waiting = *std::exchange(handler_, std::nullopt), ... args = std::move(args)]() mutable {
        std::move(waiting)(std::move(args)...);
      });
    }

   private:
    // The handler may own this node: nothing of the node is used once it is being destroyed.
    void Drop() override { const auto dropped = std::exchange(handler_, std::nullopt); }

    const asio::any_io_executor executor_;
    std::optional<Handler> handler_;
  };
  auto node = std::make_shared<Node>(executor, std::move(handler));
  node->Enter();
  return [node = std::move(node)](Args... args) { node->Resume(std::move(args)...); };
}

// Waits until the callback that start(callback) gets is called.
template <class Start>
Awaitable<void> Park(Start start) {
  auto executor = co_await asio::this_coro::executor;
  auto token = asio::use_awaitable;
  co_await asio::async_initiate<const asio::use_awaitable_t<>, void()>(
      [executor](auto handler, Start inner) { inner(ParkHandler(executor, std::move(handler))); }, token,
      std::move(start));
}

// The same for a callback that brings a value.
template <class T, class Start>
Awaitable<T> ParkFor(Start start) {
  auto executor = co_await asio::this_coro::executor;
  auto token = asio::use_awaitable;
  co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(T)>(
      [executor](auto handler, Start inner) { inner(ParkHandler<T>(executor, std::move(handler))); }, token,
      std::move(start));
}

}  // namespace keelson::async
