#include "kv/mvcc/watch_hub.h"

#include <gtest/gtest.h>

namespace keelson::kv::mvcc {
namespace {

struct Waiting {
  Waiting(WatchHub& hub_in, const std::string& key, const std::string& range_end, Revision next) : hub(hub_in) {
    cursor.next = next;
    hub.Join(cursor, key, range_end, false);
  }
  ~Waiting() { hub.Leave(cursor, false); }
  void Wait(Revision visible) {
    hub.Wait(cursor, visible, [this](Wake) { ++woken; });
  }
  WatchHub& hub;
  WatchCursor cursor;
  int woken = 0;
};

class WatchHubTest : public ::testing::Test {
 protected:
  void Publish(const std::string& key) {
    Entry entry{key, {}};
    const Change change{.revision = ++visible, .entry = &entry};
    auto wakes = hub.Publish({&change, 1}, visible);
    for (auto& wake : wakes) wake(Wake::kLook);
  }
  WatchHub hub;
  Revision visible = 1;
};

TEST_F(WatchHubTest, WakesMatchingWatchers) {
  Waiting pods(hub, "/pods/", PrefixEnd("/pods/"), 2);
  Waiting one(hub, "/pods/a", "", 2);
  Waiting nodes(hub, "/nodes/", PrefixEnd("/nodes/"), 2);
  for (Waiting* each : {&pods, &one, &nodes}) each->Wait(visible);
  Publish("/pods/b");
  EXPECT_EQ(pods.woken, 1);
  EXPECT_EQ(one.woken, 0);
  EXPECT_EQ(nodes.woken, 0);
  pods.cursor.next = 3;
  pods.Wait(visible);
  Publish("/pods/a");
  EXPECT_EQ(pods.woken, 2);
  EXPECT_EQ(one.woken, 1);
  EXPECT_EQ(nodes.woken, 0);
}

// A watcher that waited has seen what did not concern it: a compaction up to there does not end its watch.
TEST_F(WatchHubTest, CursorsMoveOnWhenTheyAreWoken) {
  Waiting pods(hub, "/pods/", PrefixEnd("/pods/"), 2);
  Waiting future(hub, "/pods/", PrefixEnd("/pods/"), 50);
  Waiting canceled(hub, "/nodes/", PrefixEnd("/nodes/"), 2);
  Waiting progress(hub, "/leases/", PrefixEnd("/leases/"), 2);
  progress.cursor.progress_notify = true;
  for (Waiting* each : {&pods, &future, &canceled, &progress}) each->Wait(visible);
  for (int i = 0; i < 10; ++i) Publish("/other");
  Publish("/pods/a");
  EXPECT_EQ(pods.cursor.next, 12) << "of the change that woke it";
  EXPECT_EQ(future.woken, 1);
  EXPECT_EQ(future.cursor.next, 50);
  hub.Cancel(canceled.cursor);
  EXPECT_EQ(canceled.woken, 1);
  EXPECT_EQ(canceled.cursor.next, 13);
  auto wakes = hub.Progress();
  EXPECT_EQ(wakes.size(), 1U);
  EXPECT_TRUE(progress.cursor.progress_wanted);
  EXPECT_EQ(progress.cursor.next, 13);
}

TEST_F(WatchHubTest, WatchersLeaveWhileTheyWait) {
  auto first = std::make_unique<Waiting>(hub, "/a", "", 2);
  auto second = std::make_unique<Waiting>(hub, "/a", "", 2);
  auto third = std::make_unique<Waiting>(hub, "/a", "", 2);
  for (Waiting* each : {first.get(), second.get(), third.get()}) each->Wait(visible);
  second.reset();
  Publish("/a");
  EXPECT_EQ(first->woken + third->woken, 2);
  third.reset();
  first.reset();
  Publish("/a");
}

}  // namespace
}  // namespace keelson::kv::mvcc
