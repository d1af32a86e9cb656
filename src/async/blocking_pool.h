// Named threads for what blocks: files, RocksDB, DNS, large one-off CPU work. The coroutine resumes on its own
// executor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "async/awaitable.h"

namespace keelson::async {

class BlockingPool {
 public:
  BlockingPool(std::string name, std::size_t threads);
  ~BlockingPool();  // waits for what was posted

  void Post(std::function<void()> work);

  // Runs `work` here and returns its result to the awaiting coroutine, on that coroutine's executor.
  template <class F>
  Awaitable<std::invoke_result_t<F>> Run(F work) {
    using T = std::invoke_result_t<F>;
    auto executor = co_await asio::this_coro::executor;
    auto token = asio::use_awaitable;
    co_return co_await asio::async_initiate<const asio::use_awaitable_t<>, void(T)>(
        [this, executor](auto handler, F inner) {
          auto shared = std::make_shared<decltype(handler)>(std::move(handler));
          Post([shared, executor, inner = std::move(inner)]() mutable {
            T result = inner();
            asio::post(executor, [shared, result = std::move(result)]() mutable { (*shared)(std::move(result)); });
          });
        },
        token, std::move(work));
  }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::async
