#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "async/blocking_pool.h"
#include "async/event.h"
#include "async/gate.h"
#include "async/io_pool.h"

namespace keelson::async {
namespace {

Awaitable<std::thread::id> HopAndBack(BlockingPool& pool, std::thread::id& worker) {
  worker = co_await pool.Run([] { return std::this_thread::get_id(); });
  co_return std::this_thread::get_id();
}

TEST(BlockingPool, RunsElsewhereAndComesBack) {
  IOPool io(1);
  BlockingPool pool("test", 2);
  std::thread::id worker;
  auto task = HopAndBack(pool, worker);
  const auto home = asio::co_spawn(io.executor(0), std::move(task), asio::use_future).get();
  EXPECT_NE(worker, home);
}

TEST(Event, WakesWaitersOnce) {
  IOPool io(2);
  Event event;
  std::vector<std::future<void>> waiting;
  for (int i = 0; i < 10; ++i) {
    auto wait = event.Wait();
    waiting.push_back(asio::co_spawn(io.Next(), std::move(wait), asio::use_future));
  }
  event.Set();
  for (auto& future : waiting) future.get();
  auto late = event.Wait();
  asio::co_spawn(io.Next(), std::move(late), asio::use_future).get();
}

TEST(Gate, CloseWaitsForEntries) {
  Gate gate;
  auto entry = gate.Enter();
  ASSERT_TRUE(entry);
  std::thread leaver([moved = *std::move(entry)] {});
  gate.Close();
  leaver.join();
  EXPECT_FALSE(gate.Enter());
}

}  // namespace
}  // namespace keelson::async
