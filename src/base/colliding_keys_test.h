// Texts with equal std::hash in libstdc++, for tests of hash flooding. Its hash is MurmurHash64A with a
// fixed seed: after any first block of 8 bytes, a second one can be computed that leads to a given state. Pairs of
// such blocks are joined freely: n pairs give 2^n texts. All bytes are ones that JSON and YAML take as they are.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace keelson::base {

inline std::vector<std::string> CollidingKeys(std::size_t count) {
  constexpr std::uint64_t kMul = 0xc6a4a7935bd1e995;
  std::uint64_t inverse = kMul;  // of an odd number modulo 2^64, by Newton's iteration
  for (int i = 0; i < 6; ++i) inverse *= 2 - kMul * inverse;
  const auto shift_mix = [](std::uint64_t v) { return v ^ (v >> 47); };  // its own inverse
  const auto plain = [](std::uint64_t block) {
    for (int i = 0; i < 8; ++i, block >>= 8) {
      const auto c = static_cast<unsigned char>(block);
      const bool letter = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter && c != '-' && c != '_' && c != '.' && c != '(' && c != ')' && c != '+' && c != '/' && c != ';') {
        return false;
      }
    }
    return true;
  };
  static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
  std::uint64_t random = 88172645463325252;
  const auto block = [&] {
    char text[8];
    for (char& c : text) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      c = kLetters[random & 63];
    }
    std::uint64_t made;
    std::memcpy(&made, text, 8);
    return made;
  };
  const auto mix = [&](std::uint64_t made) { return shift_mix(made * kMul) * kMul; };
  std::size_t pairs = 0;
  while ((std::size_t{1} << pairs) < count) ++pairs;
  std::uint64_t state = 0xc70f6907 ^ (16 * pairs * kMul);
  std::vector<std::string> keys{""};
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::uint64_t one[] = {block(), block()};
    const std::uint64_t after = ((state ^ mix(one[0])) * kMul) ^ mix(one[1]);
    std::uint64_t other[] = {0, 0};
    do {
      other[0] = block();
      other[1] = shift_mix((after ^ ((state ^ mix(other[0])) * kMul)) * inverse) * inverse;
    } while (!plain(other[1]));
    state = after * kMul;
    std::vector<std::string> next;
    for (const std::string& key : keys) {
      for (const std::uint64_t* blocks : {one, static_cast<const std::uint64_t*>(other)}) {
        next.push_back(key + std::string(reinterpret_cast<const char*>(blocks), 16));
      }
    }
    keys = std::move(next);
  }
  keys.resize(count);
  return keys;
}

}  // namespace keelson::base
