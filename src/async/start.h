// Starts a detached coroutine.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/version.hpp>
#include <utility>

#include "async/awaitable.h"

namespace keelson::async {

#if BOOST_VERSION / 100 == 1081
namespace internal {

// The bottom of the coroutine's stack; keeps the executor's context running until `work` has ended.
inline asio::awaitable<asio::detail::awaitable_thread_entry_point> Enter(asio::any_io_executor executor,
                                                                         Awaitable<void> work) {
  const auto guard = asio::prefer(executor, asio::execution::outstanding_work.tracked);
  try {
    co_await std::move(work);
  } catch (...) {  // as co_spawn() with `detached`
  }
}

}  // namespace internal

// Runs `work` here until it waits for the first time, and on `executor` from then on. An exception that it lets out is
// dropped. Like co_spawn(executor, work, detached), which also dispatches before and posts after the work: two
// allocations and a turn of the loop that a caller on the executor's thread does not need.
// REQUIRES: the calling thread is the one that runs `executor`.
inline void Start(const asio::any_io_executor& executor, Awaitable<void> work) {
  auto entered = internal::Enter(executor, std::move(work));
  asio::detail::awaitable_thread<asio::any_io_executor>(std::move(entered), executor, asio::cancellation_slot(),
                                                        asio::cancellation_state())
      .launch();
}
#else  // Asio's internals differ from version to version.
inline void Start(const asio::any_io_executor& executor, Awaitable<void> work) {
  asio::co_spawn(executor, std::move(work), asio::detached);
}
#endif

}  // namespace keelson::async
