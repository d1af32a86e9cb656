// A coroutine run to its end on this thread. For tests.
#pragma once
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include "async/awaitable.h"
namespace keelson::async {
// The context of one run. It ends when its last work is gone, which another thread may be just about to report: what
// waits on it is destroyed at once, the context itself a few runs later, when that thread is done with it.
class RunContext {
 public:
  RunContext() {
    if (Kept().size() == kKept) Kept().pop_front();
    context_ = Kept().emplace_back(std::make_unique<Context>()).get();
  }
  ~RunContext() { context_->Shutdown(); }
  asio::io_context& operator*() { return *context_; }

 private:
  static constexpr std::size_t kKept = 16;
  class Context : public asio::io_context {
   public:
    void Shutdown() { shutdown(); }
  };
  static std::deque<std::unique_ptr<Context>>& Kept() {
    thread_local std::deque<std::unique_ptr<Context>> contexts;
    return contexts;
  }
  Context* context_;
};

template <class T>
T RunNow(Awaitable<T> task) {
  RunContext run;
  asio::io_context& context = *run;
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
