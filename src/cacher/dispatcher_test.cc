// Shared state of watchers: one selection for equal selectors, so that thousands of idle ones cost little.
#include "cacher/dispatcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/fake_clock.h"

namespace keelson::cacher {
namespace {

class DispatcherTest : public ::testing::Test {
 protected:
  Dispatcher::WatcherPtr Register(WatchSelection selection) {
    SnapshotPtr initial;
    std::uint64_t oldest = 0;
    return dispatcher.Register(std::move(selection), std::nullopt, std::nullopt, &initial, &oldest);
  }
  base::FakeClock clock;
  HistoryBudget budget{1 << 20};
  Dispatcher dispatcher{clock, budget, {}};
};

TEST_F(DispatcherTest, WatchersWithEqualSelectorsShareTheirSelection) {
  const WatchSelection all{.prefix = "/registry/pods/a/", .scope_namespace = "a"};
  const auto first = Register(all);
  const auto second = Register(all);
  EXPECT_EQ(first->selection.get(), second->selection.get());

  WatchSelection bookmarks = all;
  bookmarks.predicate.allow_watch_bookmarks = true;
  const auto third = Register(bookmarks);
  EXPECT_NE(third->selection.get(), first->selection.get());
  EXPECT_TRUE(third->selection->predicate.allow_watch_bookmarks);
  EXPECT_FALSE(second->selection->predicate.allow_watch_bookmarks);

  WatchSelection labelled = all;
  labelled.predicate.label = std::make_shared<const meta::LabelSelector>(*meta::LabelSelector::Parse("app=web"));
  const auto fourth = Register(labelled);
  const auto fifth = Register(labelled);
  EXPECT_NE(fourth->selection.get(), fifth->selection.get()) << "selectors are not compared";
  WatchSelection elsewhere = all;
  elsewhere.prefix = "/registry/pods/b/";
  EXPECT_EQ(Register(elsewhere)->selection->prefix, "/registry/pods/b/") << "the same group, another prefix";
  for (const auto& watcher : {first, second, third, fourth, fifth}) dispatcher.Unregister(*watcher);
}

// Tick() used to run in circles, with the lock held, from the start of that second until the bookmark's moment.
TEST_F(DispatcherTest, TheLastBookmarkBeforeADeadlineIsScheduledOnceInItsSecond) {
  WatchSelection selection{.prefix = "/registry/pods/"};
  selection.predicate.allow_watch_bookmarks = true;
  SnapshotPtr initial;
  std::uint64_t oldest = 0;
  // The last bookmark is due 10.7 seconds from now.
  const auto deadline = clock.Monotonic() + std::chrono::milliseconds(12'700);
  const auto watcher = dispatcher.Register(selection, std::nullopt, deadline, &initial, &oldest);
  clock.Advance(std::chrono::milliseconds(9'900));
  dispatcher.Tick();
  EXPECT_FALSE(watcher->bookmark_due);
  clock.Advance(std::chrono::milliseconds(200));
  dispatcher.Tick();
  EXPECT_TRUE(watcher->bookmark_due);
  dispatcher.Unregister(*watcher);
}

// A LIST compares revision() with what it must not be older than, then reads Current().
TEST_F(DispatcherTest, SnapshotIsNeverOlderThanTheRevisionReadBeforeIt) {
  constexpr std::uint64_t kAppends = 200'000;
  std::atomic<bool> reading{false};
  std::uint64_t stale = 0;
  std::thread reader([&] {
    for (std::uint64_t revision = 0; revision < kAppends;) {
      revision = dispatcher.revision();
      stale += dispatcher.Current()->revision < revision;
      reading.store(true, std::memory_order_release);
    }
  });
  while (!reading.load(std::memory_order_acquire)) std::this_thread::yield();
  for (std::uint64_t revision = 1; revision <= kAppends; ++revision) {
    auto snapshot = base::MakeRef<Snapshot>(ObjectTree(), IndexTree(), revision);
    if (revision % 2 == 0) {
      dispatcher.Reset(std::move(snapshot), revision);
    } else {
      dispatcher.Append({}, std::move(snapshot));
    }
  }
  reader.join();
  EXPECT_EQ(stale, 0);
}

}  // namespace
}  // namespace keelson::cacher
