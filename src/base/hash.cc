#include "base/hash.h"

#include <bit>
#include <cstring>

#include "base/random.h"

namespace keelson::base {
namespace {

struct Key {
  std::uint64_t first;
  std::uint64_t second;
};

const Key& ProcessKey() {
  static const Key key{Random::Real().Next(), Random::Real().Next()};
  return key;
}

struct State {
  std::uint64_t v0, v1, v2, v3;

  [[gnu::always_inline]] void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  [[gnu::always_inline]] void Mix(std::uint64_t word) {
    v3 ^= word;
    Round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t SeededHash(std::string_view text) {
  const Key& key = ProcessKey();
  State state{key.first ^ 0x736f6d6570736575, key.second ^ 0x646f72616e646f6d, key.first ^ 0x6c7967656e657261,
              key.second ^ 0x7465646279746573};
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    state.Mix(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(text.size()) << 56;
  for (std::size_t i = 0; i < left; ++i) last |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
  state.Mix(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < 3; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace keelson::base
