#include "async/parked.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <future>

#include "async/io_pool.h"

namespace keelson::async {
namespace {

// Owned by the coroutine that waits in it, as a connection is owned by its reader.
struct Slot {
  std::function<void()> wake;
  std::promise<void> parked;
};

Awaitable<int> WaitIn(std::shared_ptr<Slot> slot) {
  co_await Park([slot](std::function<void()> wake) {
    slot->wake = std::move(wake);
    slot->parked.set_value();
  });
  co_return 7;
}

TEST(Park, ResumesOnItsExecutorOnce) {
  IOPool pool(1);
  const auto slot = std::make_shared<Slot>();
  auto result = asio::co_spawn(pool.executor(0), WaitIn(slot), asio::use_future);
  slot->parked.get_future().wait();
  const auto wake = slot->wake;
  wake();
  wake();
  EXPECT_EQ(result.get(), 7);
}

TEST(Park, WaitingCoroutineEndsWithItsPool) {
  const auto slot = std::make_shared<Slot>();
  const std::weak_ptr<Slot> weak = slot;
  std::function<void()> late;
  {
    IOPool pool(1);
    auto parked = slot->parked.get_future();
    asio::co_spawn(pool.executor(0), WaitIn(slot), asio::detached);
    parked.wait();
    late = std::exchange(slot->wake, nullptr);
  }
  EXPECT_EQ(weak.use_count(), 1) << "the coroutine still holds the slot";
  late();  // a callback that another thread still has does nothing
}

TEST(Park, CoroutineThatOwnsItsCallbackEndsWithItsPool) {
  auto slot = std::make_shared<Slot>();
  const std::weak_ptr<Slot> weak = slot;
  {
    IOPool pool(1);
    auto parked = slot->parked.get_future();
    asio::co_spawn(pool.executor(0), WaitIn(std::move(slot)), asio::detached);
    parked.wait();
  }
  EXPECT_TRUE(weak.expired());
}

Awaitable<int> CallAcross(IOPool& pool, std::shared_ptr<Slot> slot, std::size_t thread, int depth) {
  if (depth == 0) co_return co_await WaitIn(std::move(slot));
  const std::size_t next = (thread + 1) % pool.size();
  auto deeper = CallAcross(pool, std::move(slot), next, depth - 1);
  co_return co_await asio::co_spawn(pool.executor(next), std::move(deeper), asio::use_awaitable);
}

// Each caller waits on another thread than the one it called.
TEST(Park, ChainOfCallsAcrossThreadsEndsWithItsPool) {
  constexpr int kDepth = 6;
  auto slot = std::make_shared<Slot>();
  const std::weak_ptr<Slot> weak = slot;
  {
    IOPool pool(3);
    auto parked = slot->parked.get_future();
    auto call = CallAcross(pool, std::move(slot), 0, kDepth);
    asio::co_spawn(pool.executor(0), std::move(call), asio::detached);
    parked.wait();
  }
  EXPECT_TRUE(weak.expired());
}

TEST(Park, UnusedCallbackDestroysTheCoroutine) {
  asio::io_context context;
  auto slot = std::make_shared<Slot>();
  auto result = asio::co_spawn(context, WaitIn(slot), asio::use_future);
  context.poll();
  slot->wake = nullptr;
  context.restart();
  context.poll();
  EXPECT_EQ(slot.use_count(), 1);
}

}  // namespace
}  // namespace keelson::async
