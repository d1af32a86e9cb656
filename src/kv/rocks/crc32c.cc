#include "kv/rocks/crc32c.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace keelson::kv::rocks {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // of Castagnoli, reversed
constexpr std::uint32_t kInverted = 0xffffffff;    // checksums are kept inverted

constexpr std::array<std::uint32_t, 256> kTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t ExtendByInstruction(std::uint32_t crc, std::string_view bytes) {
  std::uint64_t value = crc ^ kInverted;
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= sizeof(std::uint64_t); at += sizeof(std::uint64_t), left -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    value = _mm_crc32_u64(value, word);
  }
  auto narrow = static_cast<std::uint32_t>(value);
  for (; left > 0; ++at, --left) narrow = _mm_crc32_u8(narrow, static_cast<unsigned char>(*at));
  return narrow ^ kInverted;
}
#endif

// A checksum as a polynomial, times x^8 for each byte that follows it: linear, so a matrix over bits.
using Matrix = std::array<std::uint32_t, 32>;

// Without branches, so that it is vectorized.
constexpr std::uint32_t Times(const Matrix& matrix, std::uint32_t vector) {
  std::uint32_t sum = 0;
  for (const std::uint32_t column : matrix) {
    sum ^= column & (0U - (vector & 1U));
    vector >>= 1;
  }
  return sum;
}

constexpr Matrix Squared(const Matrix& matrix) {
  Matrix square{};
  for (std::size_t i = 0; i < square.size(); ++i) square[i] = Times(matrix, matrix[i]);
  return square;
}

// By 2^i bytes of zeros. RocksDB combines sums for every record of its log, and squaring is most of the work.
constexpr auto kZeros = [] {
  Matrix bit{kPolynomial};
  for (std::size_t i = 1; i < bit.size(); ++i) bit[i] = 1U << (i - 1);
  std::array<Matrix, 8 * sizeof(std::size_t)> powers{Squared(Squared(Squared(bit)))};
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = Squared(powers[i - 1]);
  return powers;
}();

}  // namespace

std::uint32_t ExtendCRC32CByTable(std::uint32_t crc, std::string_view bytes) {
  std::uint32_t value = crc ^ kInverted;
  for (const char byte : bytes) value = (value >> 8) ^ kTable[(value ^ static_cast<unsigned char>(byte)) & 0xff];
  return value ^ kInverted;
}

std::uint32_t ExtendCRC32C(std::uint32_t crc, std::string_view bytes) {
#if defined(__x86_64__)
  static const bool in_hardware = __builtin_cpu_supports("sse4.2") != 0;
  if (in_hardware) return ExtendByInstruction(crc, bytes);
#endif
  return ExtendCRC32CByTable(crc, bytes);
}

std::uint32_t CombineCRC32C(std::uint32_t first, std::uint32_t second, std::size_t size) {
  for (; size != 0; size &= size - 1) first = Times(kZeros[static_cast<std::size_t>(std::countr_zero(size))], first);
  return first ^ second;
}

}  // namespace keelson::kv::rocks

// RocksDB's own names (its util/crc32c.h, which is not installed).
namespace rocksdb::crc32c {

std::string IsFastCrc32Supported();
std::uint32_t Extend(std::uint32_t crc, const char* data, std::size_t size);
std::uint32_t Crc32cCombine(std::uint32_t first, std::uint32_t second, std::size_t size);

std::string IsFastCrc32Supported() { return "Supported by keelson"; }
std::uint32_t Extend(std::uint32_t crc, const char* data, std::size_t size) {
  return keelson::kv::rocks::ExtendCRC32C(crc, {data, size});
}
std::uint32_t Crc32cCombine(std::uint32_t first, std::uint32_t second, std::size_t size) {
  return keelson::kv::rocks::CombineCRC32C(first, second, size);
}

}  // namespace rocksdb::crc32c
