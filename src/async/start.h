// Starts a detached coroutine.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/version.hpp>
#include <utility>

#include "async/awaitable.h"

namespace keelson::async {

#if BOOST_VERSION / 100 == 1081
// A coroutine that Start() runs without a frame of its own around it. It must let no exception out, and does not keep
// the executor's context running by itself.
using Entry = asio::awaitable<asio::detail::awaitable_thread_entry_point>;

// Runs `entry` here until it waits for the first time, and on `executor` from then on. Like co_spawn(executor, work,
// detached), which also makes a frame, counts outstanding work, dispatches before and posts after the work: several
// allocations and a turn of the loop that a caller on the executor's thread does not need.
// REQUIRES: the calling thread is the one that runs `executor`.
inline void Start(const asio::any_io_executor& executor, Entry entry) {
  asio::detail::awaitable_thread<asio::any_io_executor>(std::move(entry), executor, asio::cancellation_slot(),
                                                        asio::cancellation_state())
      .launch();
}
#else  // Asio's internals differ from version to version.
using Entry = Awaitable<void>;
inline void Start(const asio::any_io_executor& executor, Entry entry) {
  asio::co_spawn(executor, std::move(entry), asio::detached);
}
#endif

}  // namespace keelson::async
