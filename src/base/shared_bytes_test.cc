#include "base/shared_bytes.h"

#include <gtest/gtest.h>

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

TEST(SharedBytes, CopiesShareAndEmptyIsFree) {
  const SharedBytes a("text");
  const SharedBytes b = a;  // NOLINT: the copy is what is tested
  EXPECT_EQ(a.data(), b.data());
  EXPECT_TRUE(SharedBytes("").empty());
  EXPECT_EQ(SharedBytes::Static("s").view(), "s");
}

}  // namespace
}  // namespace keelson::base
