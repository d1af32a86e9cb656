#include "storage/recent_writes.h"

#include <gtest/gtest.h>

#include <string>

namespace keelson::storage {
namespace {

using base::SharedBytes;

TEST(RecentWrites, BytesAreKnownByTheirAddressAndOnce) {
  RecentWrites writes;
  writes.SetWanted(true);
  const SharedBytes written("a");
  writes.Put(written, {.normalized = SharedBytes("b"), .current = false});
  EXPECT_FALSE(writes.Take(SharedBytes("a"))) << "another value with the same text";
  const SharedBytes shared = written;
  const auto read = writes.Take(shared);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->normalized.view(), "b");
  EXPECT_FALSE(read->current);
  EXPECT_FALSE(writes.Take(written));
  EXPECT_EQ(writes.size(), 0);
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
  EXPECT_FALSE(writes.Take(written));
}

TEST(RecentWrites, AreBounded) {
  RecentWrites writes;
  writes.SetWanted(true);
  const SharedBytes first("first");
  writes.Put(first, {});
  SharedBytes last;
  for (std::size_t i = 0; i < RecentWrites::kWritesMax; ++i) writes.Put(last = SharedBytes(std::to_string(i)), {});
  EXPECT_EQ(writes.size(), RecentWrites::kWritesMax);
  EXPECT_FALSE(writes.Take(first));
  EXPECT_TRUE(writes.Take(last));
}

}  // namespace
}  // namespace keelson::storage
