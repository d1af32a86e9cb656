#include "base/shared_bytes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "base/companion.h"

namespace keelson::base {
namespace {

TEST(SharedBytes, SliceOutlivesTheWhole) {
  SharedBytes slice;
  {
    const SharedBytes whole = SharedBytes::FromString("hello, wide world of bytes");
    slice = whole.Slice(7, 4);
  }
  EXPECT_EQ(slice.view(), "wide");
}

TEST(SharedBytes, CompanionLivesAsLongAsTheLastSlice) {
  struct Counted final : Companion {
    explicit Counted(int& alive_in) : alive(alive_in) { ++alive; }
    ~Counted() override { --alive; }
    int& alive;
  };
  int alive = 0;
  SharedBytes slice;
  {
    char* data = nullptr;
    const SharedBytes whole = SharedBytes::Uninitialized(4, &data);
    std::memset(data, 'x', 4);
    Attach(whole, std::make_unique<Counted>(alive));
    slice = whole.Slice(1, 2);
  }
  EXPECT_EQ(alive, 1);
  slice = {};
  EXPECT_EQ(alive, 0);
}

TEST(SharedBytes, LargeBuffersAreWritableToTheirEnds) {
  constexpr std::size_t kMegabyte = std::size_t{1024} * 1024;
  for (const std::size_t size : {2 * kMegabyte - 1, 2 * kMegabyte, 2 * kMegabyte + 1, 5 * kMegabyte + 4095}) {
    SharedBytes tail;
    {
      char* data = nullptr;
      const SharedBytes whole = SharedBytes::Uninitialized(size, &data);
      std::memset(data, 'x', size);
      ASSERT_EQ(whole.size(), size);
      tail = whole.Slice(size - 3, 3);
    }
    EXPECT_EQ(tail.view(), "xxx");
  }
}

TEST(SharedBytes, CopiesShareAndEmptyIsFree) {
  const SharedBytes a("text");
  const SharedBytes b = a;  // NOLINT: the copy is what is tested
  EXPECT_EQ(a.data(), b.data());
  EXPECT_TRUE(SharedBytes("").empty());
  EXPECT_EQ(SharedBytes::Static("s").view(), "s");
}

}  // namespace
}  // namespace keelson::base
