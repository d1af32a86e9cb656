#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>
#include <stdexcept>
#include <thread>

#include "async/blocking_pool.h"
#include "async/cancellable_wait.h"
#include "async/deadlines.h"
#include "async/event.h"
#include "async/gate.h"
#include "async/io_pool.h"
#include "async/single_flight.h"
#include "async/start.h"
#include "async/watchdog.h"
#include "base/fake_clock.h"

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

Awaitable<void> WaitFor(Event& event, CancellationPtr cancellation, std::vector<std::string>& log) {
  log.push_back(co_await WaitUnlessCancelled(event, std::move(cancellation)) ? "set" : "cancelled");
}

TEST(Event, CancellationEndsAWait) {
  asio::io_context context;
  Event event;
  std::vector<std::string> log;
  const auto cancellation = Cancellation::New();
  asio::co_spawn(context, WaitFor(event, cancellation, log), asio::detached);
  asio::co_spawn(context, WaitFor(event, nullptr, log), asio::detached);
  context.poll();
  EXPECT_TRUE(log.empty());
  cancellation->Cancel();
  context.restart();
  context.poll();
  EXPECT_EQ(log, std::vector<std::string>{"cancelled"});
  asio::co_spawn(context, WaitFor(event, cancellation, log), asio::detached);  // cancelled before it waits
  context.restart();
  context.poll();
  event.Set();
  context.restart();
  context.poll();
  EXPECT_EQ(log, (std::vector<std::string>{"cancelled", "cancelled", "set"}));
}

Awaitable<std::string> Flown(Event& gate, int& flights) {
  ++flights;
  co_await gate.Wait();
  if (flights == 2) throw std::runtime_error("thrown");
  co_return flights == 1 ? "" : "failed";
}

Awaitable<void> Fly(std::shared_ptr<SingleFlight> flight, SingleFlight::Ration ration, Event& gate, int& flights,
                    std::vector<std::string>& log) {
  log.push_back((co_await flight->Do(ration, [&] { return Flown(gate, flights); })).value_or("no ration"));
}

TEST(SingleFlight, SharesConcurrentWorkAndLimitsStarts) {
  base::FakeClock clock;
  auto flight = std::make_shared<SingleFlight>(
      SingleFlight::Options{.burst = 2, .interval = std::chrono::seconds(10), .clock = &clock});
  asio::io_context context;
  Event gate;
  int flights = 0;
  std::vector<std::string> log;
  const auto fly = [&](SingleFlight::Ration ration) {
    asio::co_spawn(context, Fly(flight, ration, gate, flights, log), asio::detached);
    context.restart();
    context.poll();
  };
  using enum SingleFlight::Ration;
  for (int i = 0; i < 3; ++i) fly(kRationed);
  EXPECT_EQ(flights, 1);
  gate.Set();
  context.restart();
  context.poll();
  EXPECT_EQ(log, std::vector<std::string>(3, ""));
  log.clear();
  for (int i = 0; i < 3; ++i) fly(kRationed);  // each on its own now: the gate is open
  EXPECT_EQ(log, (std::vector<std::string>{"thrown", "no ration", "no ration"}));
  fly(kFree);
  clock.Advance(std::chrono::seconds(10));
  fly(kRationed);
  fly(kRationed);
  EXPECT_EQ(log, (std::vector<std::string>{"thrown", "no ration", "no ration", "failed", "failed", "no ration"}));
  EXPECT_EQ(flights, 4);
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

// Threads of a store resume coroutines on the pool until the store is destroyed, which is after Join().
TEST(IOPool, ExecutorsAcceptWorkAfterJoinAndNeverRunIt) {
  std::weak_ptr<int> weak;
  bool ran = false;
  {
    IOPool pool(1);
    pool.Join();
    std::thread([&, executor = pool.executor(0)] {
      auto held = std::make_shared<int>();
      weak = held;
      boost::asio::post(executor, [&ran, held = std::move(held)] { ran = true; });
    }).join();
    EXPECT_FALSE(weak.expired());
  }
  EXPECT_TRUE(weak.expired()) << "work that was posted is destroyed with the pool";
  EXPECT_FALSE(ran);
}

Entry WaitAndLog(Event& event, std::vector<std::string>& log) {
  log.emplace_back("began");
  co_await event.Wait();
  log.emplace_back("resumed");
}

TEST(Start, RunsAtOnceAndResumesOnTheExecutor) {
  asio::io_context context;
  Event event;
  std::vector<std::string> log;
  Start(context.get_executor(), WaitAndLog(event, log));
  EXPECT_EQ(log, std::vector<std::string>{"began"});  // before the loop has run
  event.Set();
  EXPECT_EQ(log.size(), 1u);  // resumes on the executor only
  context.run();              // returns: nothing keeps the context running after the coroutine's end
  EXPECT_EQ(log, (std::vector<std::string>{"began", "resumed"}));
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

// Also while another callback of the same moment is called.
TEST(Deadlines, ForgottenCallbackIsNotCalled) {
  Deadlines deadlines;
  const auto now = std::chrono::steady_clock::now();
  std::promise<void> added, begun, forgotten, last;
  bool called = false;
  const auto all_are_due = deadlines.Add(now, [&] { added.get_future().wait(); });
  const auto first = deadlines.Add(now, [&] {
    begun.set_value();
    forgotten.get_future().wait();
  });
  auto second = std::make_unique<Deadlines::Entry>(deadlines.Add(now, [&] { called = true; }));
  const auto third = deadlines.Add(now, [&] { last.set_value(); });
  added.set_value();
  begun.get_future().wait();
  second.reset();
  forgotten.set_value();
  last.get_future().wait();
  EXPECT_FALSE(called);
}

TEST(Watchdog, ReportsABlockedThreadAndItsRecovery) {
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
    return changed.wait_for(lock, std::chrono::seconds(20),
                            [&] { return !reports.empty() && reports.back().over == over; });
  };
  ASSERT_TRUE(wait_for(false));
  EXPECT_GE(reports.front().held, std::chrono::milliseconds(30));
  release.set_value();
  EXPECT_TRUE(wait_for(true));
}

}  // namespace
}  // namespace keelson::async
