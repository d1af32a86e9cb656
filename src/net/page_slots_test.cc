#include "net/page_slots.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace keelson::net {
namespace {

TEST(PageSlots, KeepsContentsWhileResizing) {
  struct Case {
    std::size_t before;
    std::size_t after;
  };
  constexpr Case kCases[] = {{16, 17000}, {17000, 24000}, {17000, 100000}, {20000, 100}, {100000, 17000}};
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::to_string(c.before) + " to " + std::to_string(c.after));
    auto* block = static_cast<char*>(PageSlots::Allocate(c.before));
    std::memset(block, 'x', c.before);
    block = static_cast<char*>(PageSlots::Reallocate(block, c.after));
    for (std::size_t i = 0; i < std::min(c.before, c.after); ++i) ASSERT_EQ(block[i], 'x') << i;
    PageSlots::Free(block);
  }
}

TEST(PageSlots, BlocksDoNotOverlapAndMayBeFreedElsewhere) {
  std::vector<char*> blocks;
  for (int i = 0; i < 100; ++i) {
    blocks.push_back(static_cast<char*>(i % 2 == 0 ? PageSlots::Allocate(17000) : PageSlots::AllocateClean(17000)));
    std::memset(blocks.back(), i, 17000);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(blocks[static_cast<std::size_t>(i)][0], i);
    EXPECT_EQ(blocks[static_cast<std::size_t>(i)][16999], i);
  }
  std::thread([&] {
    for (char* block : blocks) PageSlots::Free(block);
  }).join();
  auto* clean = static_cast<char*>(PageSlots::AllocateClean(17000));
  EXPECT_EQ(clean[100], 0);  // its pages were given back
  PageSlots::Free(clean);
}

}  // namespace
}  // namespace keelson::net
