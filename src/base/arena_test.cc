#include "base/arena.h"

#include <gtest/gtest.h>

namespace keelson::base {
namespace {

TEST(Arena, KeepsWhatWasCopied) {
  Arena arena;
  std::vector<std::string_view> copies;
  for (int i = 0; i < 10000; ++i) copies.push_back(arena.Copy(std::to_string(i)));
  for (int i = 0; i < 10000; ++i) EXPECT_EQ(copies[i], std::to_string(i));
}

TEST(Arena, AlignsAndServesLargePieces) {
  Arena arena;
  for (std::size_t size : {1u, 7u, 100u, 5000u, 3u * 1024 * 1024}) {
    arena.Copy("x");
    auto* piece = arena.NewArray<std::uint64_t>(size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % alignof(std::uint64_t), 0u);
    piece[0] = piece[size - 1] = 1;
  }
}

TEST(Arena, JoinsText) {
  Arena arena;
  EXPECT_EQ(arena.Concat("a", "bc"), "abc");
  EXPECT_EQ(arena.Concat("", ""), "");
}

}  // namespace
}  // namespace keelson::base
