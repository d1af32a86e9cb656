// A coroutine run to its end on this thread. For tests.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include "async/awaitable.h"
namespace keelson::async {
template <class T>
T RunNow(Awaitable<T> task) {
  asio::io_context context;
  const auto rethrow = [](std::exception_ptr exception) {
    if (exception) std::rethrow_exception(exception);
  };
  if constexpr (std::is_void_v<T>) {
    asio::co_spawn(context, std::move(task), rethrow);
    context.run();
  } else {
    std::optional<T> result;
    const auto keep = [](Awaitable<T> work, std::optional<T>& out) -> Awaitable<void> {
      out.emplace(co_await std::move(work));
    };
    asio::co_spawn(context, keep(std::move(task), result), rethrow);
    context.run();
    return *std::move(result);
  }
}
}  // namespace keelson::async
