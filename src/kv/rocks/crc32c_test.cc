#include "kv/rocks/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace rocksdb::crc32c {
std::string IsFastCrc32Supported();
std::uint32_t Extend(std::uint32_t crc, const char* data, std::size_t size);
}  // namespace rocksdb::crc32c

namespace keelson::kv::rocks {
namespace {

std::string RandomBytes(std::mt19937& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// RFC 3720, B.4.
TEST(CRC32CTest, KnownSums) {
  EXPECT_EQ(ExtendCRC32C(0, ""), 0U);
  EXPECT_EQ(ExtendCRC32C(0, "123456789"), 0xe3069283U);
  EXPECT_EQ(ExtendCRC32C(0, std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(ExtendCRC32C(0, std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(ExtendCRC32CByTable(0, "123456789"), 0xe3069283U);
}

TEST(CRC32CTest, EverySplitAndAlignmentAgrees) {
  std::mt19937 random(1);
  const std::string bytes = RandomBytes(random, 300);
  const std::string_view all = bytes;
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t end = begin; end <= all.size(); ++end) {
      const std::string_view text = all.substr(begin, end - begin);
      const std::uint32_t sum = ExtendCRC32CByTable(0, text);
      ASSERT_EQ(ExtendCRC32C(0, text), sum) << begin << " " << end;
      const std::size_t cut = text.size() / 3;
      ASSERT_EQ(ExtendCRC32C(ExtendCRC32C(0, text.substr(0, cut)), text.substr(cut)), sum) << begin << " " << end;
    }
  }
}

TEST(CRC32CTest, CombinesTwoSums) {
  std::mt19937 random(2);
  for (const std::size_t size : {0, 1, 7, 64, 1000, 70000}) {
    const std::string first = RandomBytes(random, 1 + random() % 100);
    const std::string second = RandomBytes(random, size);
    EXPECT_EQ(CombineCRC32C(ExtendCRC32C(0, first), ExtendCRC32C(0, second), second.size()),
              ExtendCRC32C(0, first + second))
        << size;
  }
}

// Beyond what fits in memory: 2^(i+1) zeros are twice 2^i zeros.
TEST(CRC32CTest, CombinesSumsOfAnyLength) {
  const std::uint32_t first = ExtendCRC32C(0, "first");
  std::uint32_t zeros = ExtendCRC32C(0, std::string_view("\0", 1));
  for (int i = 0; i < 63; ++i) {
    const std::size_t size = std::size_t{1} << i;
    const std::uint32_t twice = CombineCRC32C(zeros, zeros, size);
    EXPECT_EQ(CombineCRC32C(CombineCRC32C(first, zeros, size), zeros, size), CombineCRC32C(first, twice, 2 * size))
        << i;
    zeros = twice;
  }
}

TEST(CRC32CTest, RocksDBCallsIt) {
  EXPECT_EQ(::rocksdb::crc32c::IsFastCrc32Supported(), "Supported by keelson");
  EXPECT_EQ(::rocksdb::crc32c::Extend(0, "123456789", 9), 0xe3069283U);
}

}  // namespace
}  // namespace keelson::kv::rocks
