#include "storage/transform/xsalsa20.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace keelson::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

using Words = std::array<std::uint32_t, 16>;
constexpr std::array<std::uint32_t, 4> kSigma = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};  // "expand 32-byte k"

std::uint32_t Word(std::string_view bytes, std::size_t index) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + 4 * index, 4);
  return word;
}

void QuarterRound(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c, std::uint32_t& d) {
  b ^= std::rotl(a + d, 7);
  c ^= std::rotl(b + a, 9);
  d ^= std::rotl(c + b, 13);
  a ^= std::rotl(d + c, 18);
}

void TwentyRounds(Words& x) {
  for (int i = 0; i < 10; ++i) {
    QuarterRound(x[0], x[4], x[8], x[12]);  // columns
    QuarterRound(x[5], x[9], x[13], x[1]);
    QuarterRound(x[10], x[14], x[2], x[6]);
    QuarterRound(x[15], x[3], x[7], x[11]);
    QuarterRound(x[0], x[1], x[2], x[3]);  // rows
    QuarterRound(x[5], x[6], x[7], x[4]);
    QuarterRound(x[10], x[11], x[8], x[9]);
    QuarterRound(x[15], x[12], x[13], x[14]);
  }
}

// The constants on the diagonal, the key in two halves, 16 bytes of input between them.
Words Input(const std::array<std::uint32_t, 8>& key, const std::array<std::uint32_t, 4>& in) {
  return {kSigma[0], key[0], key[1],    key[2], key[3], kSigma[1], in[0],  in[1],
          in[2],     in[3],  kSigma[2], key[4], key[5], key[6],    key[7], kSigma[3]};
}

}  // namespace

void XSalsa20(std::string_view key, std::string_view nonce, std::span<char> data) {
  KS_CHECK(key.size() == kXSalsa20KeyBytes && nonce.size() == kXSalsa20NonceBytes);
  std::array<std::uint32_t, 8> words{};
  for (std::size_t i = 0; i < 8; ++i) words[i] = Word(key, i);
  // HSalsa20 derives a subkey from the first 16 bytes of the nonce: the diagonal and the middle of the permuted
  // input.
  Words first = Input(words, {Word(nonce, 0), Word(nonce, 1), Word(nonce, 2), Word(nonce, 3)});
  TwentyRounds(first);
  const std::array<std::uint32_t, 8> subkey = {first[0], first[5], first[10], first[15],
                                               first[6], first[7], first[8],  first[9]};
  // Salsa20 with that key, the other 8 bytes and a block counter.
  for (std::uint64_t block = 0; block * 64 < data.size(); ++block) {
    const Words start = Input(subkey, {Word(nonce, 4), Word(nonce, 5), static_cast<std::uint32_t>(block),
                                       static_cast<std::uint32_t>(block >> 32)});
    Words stream = start;
    TwentyRounds(stream);
    for (std::size_t i = 0; i < 16; ++i) stream[i] += start[i];
    char bytes[64];
    std::memcpy(bytes, stream.data(), 64);
    const std::size_t offset = static_cast<std::size_t>(block) * 64;
    const std::size_t count = std::min<std::size_t>(64, data.size() - offset);
    for (std::size_t i = 0; i < count; ++i) data[offset + i] = static_cast<char>(data[offset + i] ^ bytes[i]);
  }
}

}  // namespace keelson::storage
