// The work queue on a fake clock.
#include "controllers/work_queue.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "async/event.h"
#include "base/fake_clock.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;
using Result = WorkQueue::Result;

class WorkQueueTest : public ::testing::Test {
 public:
  // A started queue; `sync` processes one key.
  std::shared_ptr<WorkQueue> New(std::function<Awaitable<Result>(std::string key)> sync, std::size_t workers = 1,
                                 WorkQueueMetrics* metrics = nullptr) {
    WorkQueue::Options options{.name = "q", .workers = workers, .clock = &clock_, .metrics = metrics};
    options.call_at = [this](base::Clock::SteadyTime at, std::function<void()> callback) {
      timer_ = std::make_shared<Timer>(Timer{at, std::move(callback)});
      return timer_;
    };
    auto queue = WorkQueue::New(io_.get_executor(), std::move(options), std::move(sync));
    queue->Open();
    return queue;
  }
  void Run() {
    io_.restart();
    io_.run();
  }
  // Moves the clock to the timer and calls it; the time that passed.
  std::chrono::nanoseconds RunTimer() {
    const auto timer = timer_;
    const auto passed = timer->at - clock_.Monotonic();
    clock_.Advance(passed);
    timer->callback();
    Run();
    return passed;
  }

  struct Timer {
    base::Clock::SteadyTime at;
    std::function<void()> callback;
  };
  boost::asio::io_context io_;
  base::FakeClock clock_;
  std::shared_ptr<Timer> timer_;
  std::vector<std::string> seen_;
};

TEST_F(WorkQueueTest, KeysAreProcessedOnceAndInOrder) {
  const auto sync = [](WorkQueueTest* test, std::string key) -> Awaitable<Result> {
    test->seen_.push_back(key);
    co_return Result::Done();
  };
  const auto queue = New([this, sync](std::string key) { return sync(this, std::move(key)); });
  for (const char* key : {"a", "b", "a", "c", "b"}) queue->Add(key);
  EXPECT_EQ(queue->depth(), 3u);
  Run();
  EXPECT_EQ(seen_, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(queue->idle());
}

TEST_F(WorkQueueTest, KeyAddedDuringProcessingIsProcessedAgain) {
  std::shared_ptr<WorkQueue> queue;
  const auto sync = [&queue](WorkQueueTest* test, std::string key) -> Awaitable<Result> {
    test->seen_.push_back(key);
    if (test->seen_.size() == 1) {
      queue->Add(key);
      queue->Add(key);
    }
    co_return Result::Done();
  };
  queue = New([this, sync](std::string key) { return sync(this, std::move(key)); }, 4);
  queue->Add("a");
  Run();
  EXPECT_EQ(seen_, (std::vector<std::string>{"a", "a"}));
}

TEST_F(WorkQueueTest, RetriesBackOffUntilForgotten) {
  int failures = 3;
  const auto sync = [&failures](std::string) -> Awaitable<Result> {
    co_return failures-- > 0 ? Result::Retry() : Result::Done();
  };
  const auto queue = New([sync](std::string key) { return sync(std::move(key)); });
  queue->Add("a");
  Run();
  EXPECT_EQ(RunTimer(), 5ms);
  EXPECT_EQ(RunTimer(), 10ms);
  EXPECT_EQ(RunTimer(), 20ms);
  EXPECT_TRUE(queue->idle());
  failures = 1;
  queue->Add("a");
  Run();
  EXPECT_EQ(RunTimer(), 5ms);
}

TEST_F(WorkQueueTest, EarlierOfTwoDelaysWins) {
  const auto sync = [](WorkQueueTest* test, std::string key) -> Awaitable<Result> {
    test->seen_.push_back(key);
    co_return Result::Done();
  };
  const auto queue = New([this, sync](std::string key) { return sync(this, std::move(key)); });
  queue->AddAfter("a", 10s);
  queue->AddAfter("a", 3s);
  queue->AddAfter("a", 7s);
  queue->AddAfter("b", 5s);
  EXPECT_EQ(RunTimer(), 3s);
  EXPECT_EQ(RunTimer(), 2s);
  EXPECT_EQ(seen_, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(queue->idle());
}

TEST_F(WorkQueueTest, NothingIsProcessedAfterShutDown) {
  const auto sync = [](WorkQueueTest* test, std::string key) -> Awaitable<Result> {
    test->seen_.push_back(key);
    co_return Result::Retry();
  };
  const auto queue = New([this, sync](std::string key) { return sync(this, std::move(key)); });
  queue->Add("a");
  Run();
  queue->Add("b");
  queue->ShutDown();
  queue->Add("c");
  timer_->callback();
  Run();
  EXPECT_EQ(seen_, std::vector<std::string>{"a"});
  EXPECT_TRUE(queue->idle());
}

TEST_F(WorkQueueTest, WorkersRunAtTheSameTime) {
  async::Event go;
  int running = 0, most = 0;
  const auto sync = [&](std::string) -> Awaitable<Result> {
    most = std::max(most, ++running);
    co_await go.Wait();
    --running;
    co_return Result::Done();
  };
  const auto queue = New([&sync](std::string key) { return sync(std::move(key)); }, 3);
  for (const char* key : {"a", "b", "c", "d", "e"}) queue->Add(key);
  io_.restart();
  while (running < 3) io_.poll_one();
  go.Set();
  Run();
  EXPECT_EQ(most, 3);
  EXPECT_TRUE(queue->idle());
}

TEST_F(WorkQueueTest, MetricsCountAddsAndRetries) {
  telemetry::MetricsRegistry registry;
  WorkQueueMetrics metrics(registry);
  int failures = 1;
  const auto sync = [&failures](std::string) -> Awaitable<Result> {
    co_return failures-- > 0 ? Result::Retry() : Result::Done();
  };
  const auto queue = New([sync](std::string key) { return sync(std::move(key)); }, 1, &metrics);
  queue->Add("a");
  Run();
  RunTimer();
  const std::string text = registry.Expose();
  EXPECT_NE(text.find("workqueue_adds_total{name=\"q\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("workqueue_retries_total{name=\"q\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("workqueue_depth{name=\"q\"} 0\n"), std::string::npos);
  EXPECT_NE(text.find("workqueue_work_duration_seconds_count{name=\"q\"} 2\n"), std::string::npos);
}

TEST_F(WorkQueueTest, StuckKeyFailsTheHealthCheck) {
  async::Event release;
  const auto sync = [](async::Event* event, std::string) -> Awaitable<Result> {
    co_await event->Wait();
    co_return Result::Done();
  };
  const auto health = std::make_shared<WorkHealth>();
  const auto queue = WorkQueue::New(io_.get_executor(), {.name = "q", .clock = &clock_, .health = health},
                                    [&](std::string key) { return sync(&release, std::move(key)); });
  queue->Open();
  queue->Add("a");
  io_.restart();
  io_.poll();
  clock_.Advance(WorkHealth::kStuckAfter);
  EXPECT_EQ(health->Problem(clock_.Monotonic()), "");
  clock_.Advance(1min);
  EXPECT_EQ(health->Problem(clock_.Monotonic()), "one item has been worked on for 11 minutes");
  release.Set();
  Run();
  EXPECT_EQ(health->Problem(clock_.Monotonic()), "");
}

TEST(RateLimiter, ExponentialUpToTheMaximum) {
  RateLimiter limiter({.per_second = 1e9, .burst = 1e9});
  const base::FakeClock clock;
  std::chrono::nanoseconds want = 5ms;
  for (int i = 0; i < 18; ++i, want *= 2) {
    EXPECT_EQ(limiter.When("a", clock.Monotonic()), std::min<std::chrono::nanoseconds>(want, 1000s));
  }
  EXPECT_EQ(limiter.When("a", clock.Monotonic()), 1000s);
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(limiter.When("a", clock.Monotonic()), 1000s);
  limiter.Forget("a");
  EXPECT_EQ(limiter.When("a", clock.Monotonic()), 5ms);
}

TEST(RateLimiter, TokenBucketLimitsManyKeys) {
  RateLimiter limiter({});
  base::FakeClock clock;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limiter.When(std::to_string(i), clock.Monotonic()), 5ms);
  EXPECT_EQ(limiter.When("100", clock.Monotonic()), 100ms);
  EXPECT_EQ(limiter.When("101", clock.Monotonic()), 200ms);
  clock.Advance(1s);
  EXPECT_EQ(limiter.When("102", clock.Monotonic()), 5ms);
}

}  // namespace
}  // namespace keelson::controllers
