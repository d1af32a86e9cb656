#include "storage/recent_writes.h"

#include <gtest/gtest.h>

#include <string>

namespace keelson::storage {
namespace {

using base::SharedBytes;

ObjectPtr NewObject(std::uint64_t revision) {
  return ObjectPtr(new Object("/things/a", revision, SharedBytes("a"), Attributes()));
}

TEST(RecentWrites, BytesAreKnownByTheirAddress) {
  RecentWrites writes;
  writes.SetWanted(true);
  const SharedBytes written("a");
  writes.Put(written, {.normalized = SharedBytes("b"), .current = false});
  EXPECT_FALSE(writes.Find(SharedBytes("a"))) << "another value with the same text";
  const SharedBytes shared = written;
  const auto known = writes.Find(shared);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->read.normalized.view(), "b");
  EXPECT_FALSE(known->read.current);
  EXPECT_FALSE(known->object);
  writes.Forget(shared);
  EXPECT_FALSE(writes.Find(written));
}

TEST(RecentWrites, TheSecondSideTakesTheObjectOfTheFirst) {
  RecentWrites writes;
  writes.SetWanted(true);
  const SharedBytes written("a");
  writes.Put(written, {});
  ASSERT_TRUE(writes.Find(written));
  const ObjectPtr made = NewObject(2);
  EXPECT_EQ(writes.Share(written, made), made);
  const auto known = writes.Find(written);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->object, made);
  EXPECT_EQ(writes.size(), 0) << "nobody else will come";
}

TEST(RecentWrites, SidesThatMeetWhileBothMakeItEndWithOneObject) {
  RecentWrites writes;
  writes.SetWanted(true);
  const SharedBytes written("a");
  writes.Put(written, {});
  ASSERT_TRUE(writes.Find(written));
  ASSERT_TRUE(writes.Find(written));
  const ObjectPtr first = NewObject(2);
  EXPECT_EQ(writes.Share(written, first), first);
  EXPECT_EQ(writes.Share(written, NewObject(2)), first);
  EXPECT_EQ(writes.size(), 0);
  const ObjectPtr late = NewObject(2);
  EXPECT_EQ(writes.Share(written, late), late) << "forgotten meanwhile";
}

TEST(RecentWrites, NothingIsKeptUnlessSomebodyReadsIt) {
  RecentWrites writes;
  const SharedBytes written("a");
  writes.Put(written, {});
  EXPECT_EQ(writes.size(), 0);
  writes.SetWanted(true);
  writes.Put(written, {});
  EXPECT_EQ(writes.size(), 1);
  writes.SetWanted(false);
  EXPECT_EQ(writes.size(), 0);
  EXPECT_FALSE(writes.Find(written));
}

TEST(RecentWrites, AreBounded) {
  RecentWrites writes;
  writes.SetWanted(true);
  const SharedBytes first("first");
  writes.Put(first, {});
  SharedBytes last;
  for (std::size_t i = 0; i < RecentWrites::kWritesMax; ++i) writes.Put(last = SharedBytes(std::to_string(i)), {});
  EXPECT_EQ(writes.size(), RecentWrites::kWritesMax);
  EXPECT_FALSE(writes.Find(first));
  EXPECT_TRUE(writes.Find(last));
}

}  // namespace
}  // namespace keelson::storage
