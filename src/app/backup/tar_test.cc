#include "app/backup/tar.h"

#include <gtest/gtest.h>

namespace keelson::app {
namespace {

TEST(Tar, HeadersReadBack) {
  const TarEntry entries[] = {
      {.name = "pki/ca.crt", .size = 0, .mode = 0644, .mtime = 1'794'801'600},
      {.name = "store.snapshot", .size = 8'589'934'591, .mode = 0600, .mtime = 0},
      {.name = std::string(kTarNameMax, 'n'), .size = std::uint64_t{1} << 40, .mode = 0600, .mtime = 1},
  };
  for (const TarEntry& entry : entries) {
    SCOPED_TRACE(entry.name);
    const auto block = MakeTarHeader(entry);
    const auto read = ParseTarHeader({block.data(), block.size()});
    ASSERT_TRUE(read);
    EXPECT_EQ(read->name, entry.name);
    EXPECT_EQ(read->size, entry.size);
    EXPECT_EQ(read->mode, entry.mode);
    EXPECT_EQ(read->mtime, entry.mtime);
  }
}

TEST(Tar, DamagedHeadersAreRefused) {
  const auto block = MakeTarHeader({.name = "store.snapshot", .size = 700});
  constexpr std::size_t kAfterChecksum = 155;  // unused filler bytes
  for (std::size_t at = 0; at < kTarBlock; ++at) {
    if (at == kAfterChecksum) continue;
    auto damaged = block;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(ParseTarHeader({damaged.data(), damaged.size()})) << at;
  }
  EXPECT_FALSE(ParseTarHeader(std::string(kTarBlock, '\0')));
  EXPECT_FALSE(ParseTarHeader("short"));
}

TEST(Tar, Padding) {
  EXPECT_EQ(TarPadding(0), 0u);
  EXPECT_EQ(TarPadding(1), 511u);
  EXPECT_EQ(TarPadding(512), 0u);
}

}  // namespace
}  // namespace keelson::app
