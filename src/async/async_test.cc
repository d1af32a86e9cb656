#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <thread>

#include "async/watchdog.h"
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

TEST(Watchdog, ReportsAThreadThatIsHeldAndThatItAnswersAgain) {
  IOPool pool(2);
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Watchdog::Report> reports;
  const Watchdog watchdog(pool, {.held = std::chrono::milliseconds(30), .period = std::chrono::milliseconds(5)},
                          [&](const Watchdog::Report& report) {
                            if (report.thread != 1) return;  // a busy machine may starve the other one
                            std::lock_guard lock(mutex);
                            reports.push_back(report);
                            changed.notify_all();
                          });
  std::promise<void> release;
  boost::asio::post(pool.executor(1), [&] { release.get_future().wait(); });
  const auto wait_for = [&](bool over) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return !reports.empty() && reports.back().over == over; });
  };
  ASSERT_TRUE(wait_for(false));
  EXPECT_GE(reports.front().held, std::chrono::milliseconds(30));
  release.set_value();
  EXPECT_TRUE(wait_for(true));
}

}  // namespace
}  // namespace keelson::async
